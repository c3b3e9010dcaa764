// TanStack Query on a server: a query is asked once, and nothing is left subscribed.

import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";
import { SpacetimeDBQueryClient, spacetimeDBQuery } from "../../src/tanstack";
import { tables } from "../client/bindings";
import { connected, row, server } from "../client/connected";
import { serverMessage, settle } from "../client/fake_server";

const people = tables.person.where((person) => person.id.lt(3));

function makeClients(): [QueryClient, SpacetimeDBQueryClient] {
  const rows = new SpacetimeDBQueryClient();
  const queryClient = new QueryClient({ defaultOptions: { queries: { queryFn: rows.queryFn } } });
  rows.connect(queryClient);
  return [queryClient, rows];
}

test("with a connection, its rows", async () => {
  const [queryClient, rows] = makeClients();
  rows.setConnection(await connected());
  const answer = queryClient.fetchQuery(spacetimeDBQuery(people));
  await settle();
  expect(server.socket.take()).toMatchObject([
    { tag: "OneOffQuery", query: 'SELECT * FROM "person" WHERE "person"."id" < 3' },
  ]);
  server.socket.deliver(serverMessage.oneOffResult(0, "person", [row(1, "a")]));
  expect(await answer).toEqual([{ id: 1, name: "a" }]);
  expect(server.socket.take()).toEqual([]);
});

test("without one, an error that says so", async () => {
  const [queryClient] = makeClients();
  await expect(queryClient.fetchQuery(spacetimeDBQuery(people))).rejects.toThrow("setConnection");
});
