import type { QueryClient } from '@tanstack/react-query';
import { createRootRouteWithContext, createRoute } from '@tanstack/react-router';
import { spacetimeDBQuery } from 'lightcone/tanstack';
import { tables } from './module_bindings';
import { People } from './People';

const root = createRootRouteWithContext<{ queryClient: QueryClient }>()();

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  // Asks for the rows before the page is shown, without waiting for them.
  loader: ({ context }) => void context.queryClient.prefetchQuery(spacetimeDBQuery(tables.person)),
  component: People,
});

export const routeTree = root.addChildren([home]);
