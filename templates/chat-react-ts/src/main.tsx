import { SpacetimeDBProvider } from 'lightcone/react';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Chat } from './Chat';
import { builder } from './connection';
import './style.css';

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <SpacetimeDBProvider connectionBuilder={builder}>
      <Chat />
    </SpacetimeDBProvider>
  </StrictMode>
);
