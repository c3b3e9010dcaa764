import { StrictMode, useMemo } from 'react';
import { createRoot } from 'react-dom/client';
import { SpacetimeDBProvider } from 'spacetimedb/react';
import { Chat } from './Chat';
import { DbConnection } from './module_bindings';
import './style.css';

const host = import.meta.env.VITE_SPACETIMEDB_HOST ?? 'http://127.0.0.1:3000';
const databaseName = import.meta.env.VITE_SPACETIMEDB_DB_NAME ?? '{{database}}';
const TOKEN_KEY = `${host}/${databaseName}/token`;

function App() {
  const builder = useMemo(
    () =>
      DbConnection.builder()
        .withUri(host)
        .withDatabaseName(databaseName)
        .withToken(localStorage.getItem(TOKEN_KEY) ?? undefined)
        // The token is who we are: with it, the next visit is by the same user.
        .onConnect((_connection, _identity, token) => localStorage.setItem(TOKEN_KEY, token)),
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
