// A connection of each test to a server of its own, which fails the test that leaves a rejection unhandled.

import { afterEach, beforeEach, expect, vi } from "vitest";
import { setGlobalLogLevel } from "../../src/client";
import { type DbConnectionBuilder as Builder, DbConnection } from "./bindings";
import { FakeServer, personBytes, serverMessage, settle, until } from "./fake_server";

/** Of the present test. */
export let server: FakeServer;
let unhandled: unknown[];
const remember = (reason: unknown): void => void unhandled.push(reason);

beforeEach(() => {
  server = new FakeServer();
  unhandled = [];
  process.on("unhandledRejection", remember);
  setGlobalLogLevel("error");
});

afterEach(async () => {
  await settle();
  process.off("unhandledRejection", remember);
  vi.restoreAllMocks();
  expect(unhandled).toEqual([]);
});

export const builder = (): Builder =>
  DbConnection.builder().withUri("ws://localhost:1").withDatabaseName("x").withWSFn(server.factory);

export async function connected(configure: (builder: Builder) => Builder = (b) => b) {
  const connection = configure(builder()).build();
  await settle();
  server.socket.open();
  server.socket.deliver(serverMessage.initialConnection("secret"));
  return connection;
}

/** The client has connected again, and the server has greeted it. */
export async function reconnected(sockets: number): Promise<void> {
  await until("another attempt", () => server.sockets.length > sockets);
  server.socket.open();
  server.socket.deliver(serverMessage.initialConnection("other secret"));
}

export const row = (id: number, name: string): Uint8Array => personBytes({ id, name });
export const names = (connection: DbConnection): string[] =>
  [...connection.db.person.iter()].map(({ name }) => name).sort();
