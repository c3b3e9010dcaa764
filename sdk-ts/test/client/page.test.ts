// @vitest-environment happy-dom
// Pages that sleep and wake up: what is dead is noticed soon, and attempts do not wait.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type ClientError, setGlobalLogLevel } from "../../src/client";
import { DbConnection } from "./bindings";
import { FakeServer, serverMessage } from "./fake_server";

let server: FakeServer;
beforeEach(() => {
  server = new FakeServer();
  setGlobalLogLevel("error");
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function connected(reasons: unknown[] = []): Promise<DbConnection> {
  const connection = DbConnection.builder()
    .withUri("ws://localhost:1")
    .withDatabaseName("x")
    .withWSFn(server.factory)
    .onReconnecting((_, { error }) => reasons.push((error as ClientError).code))
    .build();
  await vi.advanceTimersByTimeAsync(1);
  server.socket.open();
  server.socket.deliver(serverMessage.initialConnection("secret"));
  return connection;
}

const resume = (state: DocumentVisibilityState): void => {
  vi.spyOn(document, "visibilityState", "get").mockReturnValue(state);
  document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
  window.dispatchEvent(new Event("visibilitychange"));
};

test("a page that wakes up asks at once, and does not wait long for an answer", async () => {
  const reasons: unknown[] = [];
  const connection = await connected(reasons);
  resume("hidden");
  await vi.advanceTimersByTimeAsync(1);
  expect(server.socket.take()).toEqual([]);
  resume("visible");
  await vi.advanceTimersByTimeAsync(1);
  expect(server.socket.received.length).toBeGreaterThan(0);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(reasons).toEqual(["LC0856"]);
  connection.disconnect();
});

test("a page that wakes up and hears an answer stays connected", async () => {
  const connection = await connected();
  resume("visible");
  await vi.advanceTimersByTimeAsync(1);
  for (const request of server.socket.take()) {
    if (request.tag !== "Unsubscribe") continue;
    server.socket.deliver(serverMessage.subscriptionError(request.requestId, request.querySetId, "none"));
  }
  await vi.advanceTimersByTimeAsync(25_000);
  expect(connection.isActive).toBe(true);
  expect(server.sockets).toHaveLength(1);
  connection.disconnect();
});

test("an attempt that waits starts when the page wakes up, and nothing listens when all is over", async () => {
  const connection = await connected();
  server.refusal = new Error("no network");
  server.socket.drop();
  await vi.advanceTimersByTimeAsync(60_000);
  const before = server.attempts.length;
  server.refusal = undefined;
  window.dispatchEvent(new Event("online"));
  await vi.advanceTimersByTimeAsync(1);
  expect(server.attempts.length).toBe(before + 1);
  connection.disconnect();
  await vi.advanceTimersByTimeAsync(10_000);
  window.dispatchEvent(new Event("online"));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(server.attempts.length).toBe(before + 1);
});
