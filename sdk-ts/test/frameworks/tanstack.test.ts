// @vitest-environment happy-dom
// Queries of TanStack Query that are subscriptions, on a server in memory.

import { dehydrate, hydrate, QueryClient, QueryClientProvider, useQueryClient } from "@tanstack/react-query";
import * as React from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { setGlobalLogLevel } from "../../src/client";
import {
  SpacetimeDBProvider,
  SpacetimeDBQueryClient,
  spacetimeDBQuery,
  useReducer,
  useSpacetimeDBQuery,
  useSpacetimeDBSuspenseQuery,
} from "../../src/tanstack";
import { DbConnection, reducers, tables } from "../client/bindings";
import { FakeServer, personBytes, serverMessage, settle } from "../client/fake_server";

const { createElement: h } = React;
(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

let server: FakeServer;
let root: Root;
let container: HTMLElement;
let rows: SpacetimeDBQueryClient;
let queryClient: QueryClient;
let databases = 0;

beforeEach(() => {
  server = new FakeServer();
  container = document.createElement("div");
  root = createRoot(container);
  rows = new SpacetimeDBQueryClient();
  queryClient = new QueryClient({ defaultOptions: { queries: { queryFn: rows.queryFn, retry: false } } });
  rows.connect(queryClient);
  setGlobalLogLevel("error");
});

afterEach(async () => {
  await React.act(async () => root.unmount());
  rows.disconnect();
  queryClient.clear();
  await settle();
  vi.restoreAllMocks();
});

const act = (work: () => void): Promise<void> =>
  React.act(async () => {
    work();
    await settle();
  });

function render(component: React.FunctionComponent): Promise<void> {
  const connectionBuilder = DbConnection.builder()
    .withUri("ws://localhost:1")
    .withDatabaseName(`tanstack${databases++}`)
    .withWSFn(server.factory)
    .onConnect((connection) => rows.setConnection(connection))
    .withReconnect({ baseDelayMs: 0 });
  const provider = h(SpacetimeDBProvider<DbConnection>, { connectionBuilder }, h(component));
  return act(() =>
    root.render(h(React.StrictMode, null, h(QueryClientProvider, { client: queryClient }, provider))),
  );
}

const row = (id: number, name: string): Uint8Array => personBytes({ id, name });
const people = tables.person.where((person) => person.id.lt(10));
const namesOf = (found: readonly { name: string }[]): string => found.map(({ name }) => name).join();

const greet = (): Promise<void> =>
  act(() => {
    server.socket.open();
    server.socket.deliver(serverMessage.initialConnection("secret"));
  });

const answer = (found: Uint8Array[]): Promise<void> =>
  act(() => {
    for (const request of server.socket.take()) {
      if (request.tag !== "Subscribe") continue;
      const { requestId, querySetId } = request;
      server.socket.deliver(serverMessage.subscribeApplied(requestId, querySetId, "person", found));
    }
  });

const commit = (inserts: Uint8Array[], deletes: Uint8Array[] = []): Promise<void> =>
  act(() =>
    server.socket.deliver(
      serverMessage.transactionUpdate([{ querySetId: 0, table: "person", inserts, deletes }]),
    ),
  );

const Names = (): React.ReactNode => {
  const [found, isLoading, { error }] = useSpacetimeDBQuery(people);
  return h("p", null, `${isLoading} ${namesOf(found)} ${error?.message ?? ""}`);
};

test("rows of a query, up to date until they are dropped from the cache", async () => {
  await render(Names);
  expect(container.textContent).toBe("true  ");
  await greet();
  await answer([row(1, "a")]);
  expect(container.textContent).toBe("false a ");
  await commit([row(2, "b"), row(50, "elsewhere")]);
  expect(container.textContent).toBe("false a,b ");
  const { queryKey } = spacetimeDBQuery(people);
  // A row of the cache is the one that is rendered.
  const [, second] = queryClient.getQueryData<{ name: string }[]>(queryKey)!;
  await commit([], [row(1, "a")]);
  expect(queryClient.getQueryData<unknown[]>(queryKey)![0]).toBe(second);
  await act(() => queryClient.removeQueries({ queryKey }));
  await settle();
  expect(server.socket.take()).toMatchObject([{ tag: "Unsubscribe" }]);
});

test("skip asks for nothing", async () => {
  await render(() => {
    const [found, isLoading, { fetchStatus }] = useSpacetimeDBQuery<typeof tables.person.tableDef>("skip");
    return h("p", null, `${found.length} ${isLoading} ${fetchStatus}`);
  });
  await greet();
  expect(container.textContent).toBe("0 false idle");
  expect(server.socket.take()).toEqual([]);
});

test("suspense", async () => {
  const Suspended = (): React.ReactNode => {
    const [found, isLoading] = useSpacetimeDBSuspenseQuery(people);
    return h("p", null, `${isLoading} ${namesOf(found)}`);
  };
  await render(() => h(React.Suspense, { fallback: "loading" }, h(Suspended)));
  expect(container.textContent).toBe("loading");
  await greet();
  await answer([row(1, "a")]);
  expect(container.textContent).toBe("false a");
});

test("a refused query is an error, and another try is another subscription", async () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  await render(Names);
  await greet();
  const [request] = server.socket.take();
  if (request?.tag !== "Subscribe") throw new Error("no subscription");
  const { requestId, querySetId } = request;
  await act(() =>
    server.socket.deliver(serverMessage.subscriptionError(requestId, querySetId, "no such table")),
  );
  expect(container.textContent).toBe("false  no such table");
  await act(() => void queryClient.refetchQueries({ queryKey: spacetimeDBQuery(people).queryKey }));
  await answer([row(1, "a")]);
  expect(container.textContent).toBe("false a ");
});

test("rows are restored with the connection, and another connection has its own", async () => {
  await render(Names);
  await greet();
  await answer([row(1, "a")]);
  await act(() => server.socket.drop());
  expect(container.textContent).toBe("false a ");
  await React.act(async () => {
    while (server.sockets.length === 1) await settle();
  });
  await greet();
  await answer([row(2, "b")]);
  expect(container.textContent).toBe("false b ");
  const other = new FakeServer();
  const builder = DbConnection.builder().withUri("ws://localhost:1").withDatabaseName("other");
  await act(() => void rows.setConnection(builder.withWSFn(other.factory).build()));
  server = other;
  expect(container.textContent).toBe("false b ");
  await greet();
  await answer([row(3, "c")]);
  expect(container.textContent).toBe("false c ");
});

test("rows that a server fetched are shown at once, and followed when there is a connection", async () => {
  const onServer = new QueryClient();
  const options = { ...spacetimeDBQuery(people), queryFn: async () => [{ id: 1, name: "a" }] };
  await onServer.prefetchQuery(options);
  hydrate(queryClient, JSON.parse(JSON.stringify(dehydrate(onServer))));
  await render(Names);
  expect(container.textContent).toBe("false a ");
  await greet();
  await answer([row(1, "a"), row(2, "b")]);
  expect(container.textContent).toBe("false a,b ");
});

test("prefetching waits for the connection, and the provider's hooks work beside it", async () => {
  const prefetched = queryClient.fetchQuery(spacetimeDBQuery(people));
  let add!: ReturnType<typeof useReducer<typeof reducers.addPerson>>;
  await render(() => {
    add = useReducer(reducers.addPerson);
    return useQueryClient() ? null : "no client";
  });
  await greet();
  await act(() => void add({ id: 1, name: "a" }));
  expect(server.socket.received).toMatchObject([{ tag: "Subscribe" }, { name: "add_person" }]);
  await answer([row(1, "a")]);
  expect(await prefetched).toEqual([{ id: 1, name: "a" }]);
});

test("a key of something else is refused", async () => {
  await expect(queryClient.fetchQuery({ queryKey: ["todos"] })).rejects.toThrow("LC0857");
});
