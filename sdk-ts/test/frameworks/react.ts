import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import * as React from "react";
import { createRoot, hydrateRoot } from "react-dom/client";
import { SpacetimeDBProvider, useProcedure, useReducer, useSpacetimeDB, useTable } from "../../src/react";
import { SpacetimeDBQueryClient, useSpacetimeDBQuery } from "../../src/tanstack";
import { type DbConnection, procedures, reducers, tables } from "../client/bindings";
import { callbacksOf, type House, type PageProps, peopleBelow, textOf } from "./page";

const { createElement: h } = React;

function useControls(page: PageProps): void {
  const state = useSpacetimeDB();
  Object.assign(page.controls, {
    add: useReducer(reducers.addPerson, page.limits),
    double: useProcedure(procedures.doubleIt),
    connection: () => state.getConnection<DbConnection>(),
  });
}

function ReactPage({ page }: { page: PageProps }): React.ReactNode {
  useControls(page);
  const people = useTable(peopleBelow(10), callbacksOf(page));
  const [marks] = useTable(tables.mark);
  const { 0: rows, 1: isReady, error } = people;
  return h("p", null, textOf(page, useSpacetimeDB(), { rows, isReady, error }, marks.length));
}

function TanStackPage({ page }: { page: PageProps }): React.ReactNode {
  useControls(page);
  const [rows, isLoading, { error }] = useSpacetimeDBQuery(peopleBelow(10));
  const [marks] = useSpacetimeDBQuery(tables.mark);
  const people = { rows, isReady: !isLoading, error: error ?? undefined };
  return h("p", null, textOf(page, useSpacetimeDB(), people, marks.length));
}

const provided = (page: PageProps, content: React.ReactNode): React.ReactNode =>
  h(SpacetimeDBProvider<DbConnection>, { connectionBuilder: page.builder }, content);

export const reactTree = (page: PageProps): React.ReactNode => provided(page, h(ReactPage, { page }));

export function tanstackTree(page: PageProps): React.ReactNode {
  const rows = new SpacetimeDBQueryClient();
  const client = new QueryClient({ defaultOptions: { queries: { queryFn: rows.queryFn } } });
  rows.connect(client);
  page.builder.onConnect((connection) => rows.setConnection(connection));
  return h(QueryClientProvider, { client }, provided(page, h(TanStackPage, { page })));
}

function makeHouse(name: string, server: string, tree: (page: PageProps) => React.ReactNode): House {
  return {
    name,
    server,
    show(element, page, hydrates) {
      if (hydrates) {
        const hydrated = hydrateRoot(element, tree(page));
        return () => hydrated.unmount();
      }
      const root = createRoot(element);
      root.render(tree(page));
      return () => root.unmount();
    },
  };
}

export const react: House = makeHouse("React", "react.server.ts", reactTree);
export const tanstack: House = makeHouse("TanStack Query", "tanstack.server.ts", tanstackTree);
