import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createRouter, RouterProvider } from '@tanstack/react-router';
import { SpacetimeDBProvider } from 'lightcone/react';
import { SpacetimeDBQueryClient } from 'lightcone/tanstack';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { builder } from './connection';
import { routeTree } from './routes';
import './style.css';

// The queries of TanStack are subscriptions: their rows are kept up to date while they are in the cache.
const rows = new SpacetimeDBQueryClient();
const queryClient = new QueryClient({ defaultOptions: { queries: { queryFn: rows.queryFn } } });
rows.connect(queryClient);
builder.onConnect(connection => rows.setConnection(connection));

const router = createRouter({ routeTree, context: { queryClient } });
declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <SpacetimeDBProvider connectionBuilder={builder}>
        <RouterProvider router={router} />
      </SpacetimeDBProvider>
    </QueryClientProvider>
  </StrictMode>
);
