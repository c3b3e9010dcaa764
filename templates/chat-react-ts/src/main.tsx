import { StrictMode, useMemo } from 'react';
import { createRoot } from 'react-dom/client';
import { SpacetimeDBProvider } from 'spacetimedb/react';
import { Chat } from './Chat';
import { DbConnection } from './module_bindings';
import { databaseName, forgetRefusedToken, host, storedToken, storeToken } from './token';
import './style.css';

/** A server that was set up anew does not know who we were: we come back as a new user. */
async function recover() {
  if (await forgetRefusedToken()) location.reload();
}

function App() {
  const builder = useMemo(
    () =>
      DbConnection.builder()
        .withUri(host)
        .withDatabaseName(databaseName)
        .withToken(storedToken())
        .onConnect((_connection, _identity, token) => storeToken(token))
        .onConnectError(() => void recover()),
    []
  );
  return (
    <SpacetimeDBProvider connectionBuilder={builder}>
      <Chat />
    </SpacetimeDBProvider>
  );
}

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <App />
  </StrictMode>
);
