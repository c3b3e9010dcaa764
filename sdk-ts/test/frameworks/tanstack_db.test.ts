// @vitest-environment happy-dom
// Collections of TanStack DB on a server in memory.

import { BTreeIndex, createCollection, createLiveQueryCollection, eq, gt } from "@tanstack/db";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { lightconeCollectionOptions } from "../../src/tanstack-db";
import { type DbConnection, tables } from "../client/bindings";
import { builder, row, server } from "../client/connected";
import { serverMessage, settle } from "../client/fake_server";

let connection: DbConnection;

beforeEach(async () => {
  connection = builder().build();
  await settle();
  server.socket.open();
  server.socket.deliver(serverMessage.initialConnection("secret"));
});
afterEach(() => connection.disconnect());

const people = () =>
  createCollection(
    lightconeCollectionOptions(connection, tables.person, {
      autoIndex: "eager",
      defaultIndexType: BTreeIndex,
      onInsert: ({ transaction }) => connection.reducers.addPerson(transaction.mutations[0].modified),
    }),
  );

/** Answers the subscription; the people are query set 0. */
async function answer(rows: Uint8Array[]): Promise<void> {
  await settle();
  const [request] = server.socket.take();
  if (request?.tag !== "Subscribe") throw new Error("no subscription");
  server.socket.deliver(
    serverMessage.subscribeApplied(request.requestId, request.querySetId, "person", rows),
  );
  await settle();
}

const delta = (inserts: Uint8Array[], deletes: Uint8Array[] = []) => ({
  querySetId: 0,
  table: "person",
  inserts,
  deletes,
});

async function commit(inserts: Uint8Array[], deletes: Uint8Array[] = []): Promise<void> {
  server.socket.deliver(serverMessage.transactionUpdate([delta(inserts, deletes)]));
  await settle();
}

test("rows by key, and the changes of each transaction", async () => {
  const collection = people();
  const changes: string[][] = [];
  const loaded = collection.preload();
  await answer([row(1, "a"), row(2, "b"), row(3, "c")]);
  await loaded;
  expect(collection.get(2)).toMatchObject({ id: 2, name: "b" });
  collection.subscribeChanges(
    (all) => {
      changes.push(all.map(({ type, value }) => `${type} ${value.name}`));
    },
    { includeInitialState: true },
  );
  changes.length = 0;
  await commit([row(2, "B"), row(4, "d")], [row(1, "a"), row(2, "b")]);
  expect(changes).toEqual([["delete a", "update B", "insert d"]]);
  expect(collection.toArray.map(({ name }) => name).sort()).toEqual(["B", "c", "d"]);
  await collection.cleanup();
  await settle();
  expect(server.socket.take()).toMatchObject([{ tag: "Unsubscribe" }]);
});

test("live queries: conditions, order and pages", async () => {
  const collection = people();
  const live = createLiveQueryCollection((query) =>
    query
      .from({ person: collection })
      .where(({ person }) => gt(person.id, 1))
      .orderBy(({ person }) => person.name, "desc")
      .limit(2),
  );
  const loaded = live.preload();
  await answer([row(1, "z"), row(2, "b"), row(3, "c")]);
  await loaded;
  const names = (): string[] => live.toArray.map(({ name }) => name);
  expect(names()).toEqual(["c", "b"]);
  await commit([row(4, "d")]);
  expect(names()).toEqual(["d", "c"]);
  await commit([], [row(3, "c")]);
  expect(names()).toEqual(["d", "b"]);
});

test("a change is shown at once, and stays or is taken back with the outcome of its reducer", async () => {
  const collection = people();
  const loaded = collection.preload();
  await answer([]);
  await loaded;
  const taken = collection.insert({ id: 1, name: "a" });
  expect(collection.has(1)).toBe(true);
  await settle();
  const [call] = server.socket.take();
  server.socket.deliver(serverMessage.reducerOk(call!.requestId, [delta([row(1, "a")])]));
  await taken.isPersisted.promise;
  await settle();
  expect(collection.get(1)).toMatchObject({ name: "a" });

  const refused = collection.insert({ id: 2, name: "b" });
  expect(collection.has(2)).toBe(true);
  await settle();
  server.socket.deliver(serverMessage.reducerError(server.socket.take()[0]!.requestId, "no"));
  await expect(refused.isPersisted.promise).rejects.toThrow("no");
  expect(collection.has(2)).toBe(false);
});

test("a refused query", async () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  const collection = people();
  const loaded = collection.preload();
  await settle();
  const [request] = server.socket.take();
  if (request?.tag !== "Subscribe") throw new Error("no subscription");
  server.socket.deliver(
    serverMessage.subscriptionError(request.requestId, request.querySetId, "no such table"),
  );
  await expect(loaded).rejects.toThrow("no such table");
});

test("keys: those of other types are texts, and a table without one needs getKey", async () => {
  const { getKey } = lightconeCollectionOptions(connection, tables.badge);
  const [first] = [{ owner: connection.identity!, serial: 1n, isGold: true }];
  expect(typeof getKey(first)).toBe("string");
  expect(() => lightconeCollectionOptions(connection, tables.mark)).toThrow("LC0847");
  const collection = createCollection(
    lightconeCollectionOptions(connection, tables.mark, { getKey: ({ id, name }) => `${id} ${name}` }),
  );
  expect(collection.id).toBe('SELECT * FROM "mark"');
  const live = createLiveQueryCollection((query) =>
    query.from({ mark: collection }).where(({ mark }) => eq(mark.name, "x")),
  );
  expect(live.size).toBe(0);
});
