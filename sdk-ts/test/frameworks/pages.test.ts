// @vitest-environment happy-dom
// The same page in each framework but React, which has its own tests, on a server in memory.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ClientError, setGlobalLogLevel } from "../../src/client";
import { DbConnection, type DbConnectionBuilder } from "../client/bindings";
import { FakeServer, message, personBytes, serverMessage, settle } from "../client/fake_server";
import { angular } from "./angular";
import type { Controls, PageProps } from "./page";
import { renderOnServer } from "./server_pages";
import { solid } from "./solid";
import { svelte } from "./svelte";
import { vue } from "./vue";

let server: FakeServer;
let databases = 0;
const closings: (() => void)[] = [];

beforeEach(() => {
  server = new FakeServer();
  databases += 1;
  setGlobalLogLevel("error");
  // Angular tells its mode.
  vi.spyOn(console, "log").mockImplementation(() => {});
});

afterEach(async () => {
  for (const close of closings.splice(0)) close();
  await settle();
  document.body.innerHTML = "";
  vi.restoreAllMocks();
});

const builder = (token?: string): DbConnectionBuilder =>
  DbConnection.builder()
    .withUri("ws://localhost:1")
    .withDatabaseName(`page${databases}`)
    .withWSFn(server.factory)
    .withToken(token)
    .withReconnect({ baseDelayMs: 0 });

const row = (id: number, name: string): Uint8Array => personBytes({ id, name });

async function greet(token = "secret"): Promise<void> {
  server.socket.open();
  server.socket.deliver(serverMessage.initialConnection(token));
  await settle();
}

/** Answers subscriptions: people, and no marks. */
async function answer(people: Uint8Array[]): Promise<void> {
  for (const request of server.socket.take()) {
    if (request.tag === "SubscribeBatch") {
      const results = request.sets.map(({ querySetId, queries }) => {
        const isMarks = queries[0]!.includes("mark");
        return { querySetId, table: isMarks ? "mark" : "person", rows: isMarks ? [] : people };
      });
      server.socket.deliver(serverMessage.subscribeBatchApplied(request.requestId, results));
    } else if (request.tag === "Subscribe") {
      const isMarks = request.queries[0]!.includes("mark");
      const { requestId, querySetId } = request;
      const rows = isMarks ? [] : people;
      const table = isMarks ? "mark" : "person";
      server.socket.deliver(serverMessage.subscribeApplied(requestId, querySetId, table, rows));
    } else if (request.tag === "Unsubscribe") {
      const { requestId, querySetId } = request;
      server.socket.deliver(serverMessage.unsubscribeApplied(requestId, querySetId, "person", people));
    }
  }
  await settle();
}

type Delta = { table: string; inserts?: Uint8Array[]; deletes?: Uint8Array[]; querySetId?: number };

/** A transaction; the people are query set 0. */
async function commit(...deltas: Delta[]): Promise<void> {
  const all = deltas.map((delta) => ({ querySetId: 0, inserts: [], deletes: [], ...delta }));
  server.socket.deliver(serverMessage.transactionUpdate(all));
  await settle();
}

const tags = (): string[] => server.socket.take().map(({ tag }) => tag);

describe.each([vue, solid, svelte, angular])("$name", (house) => {
  interface Shown extends PageProps {
    text(): string;
    close(): void;
  }

  async function show(props: Partial<PageProps> = {}, html?: string): Promise<Shown> {
    const root = html === undefined ? document.createElement("div") : document.body;
    if (html === undefined) document.body.append(root);
    else root.innerHTML = html;
    const page: PageProps = { builder: builder(), log: [], seen: [], controls: {} as Controls, ...props };
    const close = await house.show(root, page, html !== undefined);
    let isClosed = false;
    const closeOnce = (): void => {
      if (!isClosed) close();
      isClosed = true;
    };
    closings.push(closeOnce);
    await settle();
    return Object.assign(page, { text: () => root.textContent!.trim(), close: closeOnce });
  }

  async function showWith(people: Uint8Array[], props: Partial<PageProps> = {}): Promise<Shown> {
    const page = await show(props);
    await greet();
    await answer(people);
    return page;
  }

  test("state, rows and calls of row callbacks; closed after the last use", async () => {
    const page = await show();
    expect(page.text()).toBe("false false /0");
    await greet();
    expect(page.text()).toBe("true false /0");
    await answer([row(1, "a"), row(2, "b")]);
    expect(page.text()).toBe("true true a,b/0");
    expect(page.log.splice(0)).toEqual(["+a", "+b"]);
    const { seen } = page;
    seen.length = 0;
    await commit({
      table: "person",
      inserts: [row(2, "c"), row(50, "out of the query")],
      deletes: [row(1, "a"), row(2, "b")],
    });
    expect(page.log).toEqual(["b>c", "-a"]);
    // One message is one change.
    expect(seen).toEqual(["true true c/0"]);
    expect(page.controls.connection()!.token).toBe("secret");
    page.close();
    await settle();
    expect(server.socket.readyState).toBe(3);
    expect(server.sockets).toHaveLength(1);
  });

  test("another query, and none while it is not enabled", async () => {
    const page = await showWith([row(1, "a")], { keepAliveMs: 0 });
    page.controls.setLimit(20);
    await settle();
    expect(page.text()).toBe("true false a/0");
    expect(tags().sort()).toEqual(["Subscribe", "Unsubscribe"]);
    page.controls.setEnabled(false);
    await settle();
    expect(page.text()).toBe("true true /0");
    expect(tags()).toEqual(["Unsubscribe"]);
    page.controls.setEnabled(true);
    await settle();
    await answer([row(2, "b")]);
    expect(page.text()).toContain("b/0");
  });

  test("transactions that do not change the result change nothing", async () => {
    const page = await showWith([row(1, "a")]);
    page.seen.length = 0;
    await commit({ table: "person", inserts: [row(50, "elsewhere")] });
    expect(page.seen).toEqual([]);
  });

  test("a page never has one table after and another one before a transaction", async () => {
    const page = await showWith([]);
    page.seen.length = 0;
    await commit(
      { table: "person", inserts: [row(1, "a")] },
      { table: "mark", inserts: [row(7, "x")], querySetId: 1 },
    );
    expect(page.seen).toEqual(["true true a/1"]);
  });

  test("rows outlive their last component for a while", async () => {
    const page = await showWith([row(1, "a")], { keepAliveMs: 60_000 });
    page.controls.setLimit(20);
    await settle();
    page.controls.setLimit(10);
    await settle();
    expect(page.text()).toBe("true true a/0");
    expect(tags()).toEqual(["Subscribe"]);
  });

  test("pages share a connection, and the same queries a subscription", async () => {
    // Angular has one application in an element.
    const page = await show();
    if (house === angular) document.body.innerHTML = "";
    await show();
    await greet();
    expect(server.sockets).toHaveLength(1);
    expect(tags()).toEqual(["Subscribe", "Subscribe"]);
    page.close();
    await settle();
    expect(server.socket.readyState).toBe(1);
  });

  test("a refused query is an error of its result", async () => {
    const complaints = vi.spyOn(console, "error").mockImplementation(() => {});
    const page = await show();
    await greet();
    const [people] = server.socket.take();
    if (people?.tag !== "Subscribe") throw new Error("no subscription");
    server.socket.deliver(
      serverMessage.subscriptionError(people.requestId, people.querySetId, "no such table"),
    );
    await settle();
    expect(page.text()).toBe("true false /0 no such table");
    expect(complaints).toHaveBeenCalledOnce();
  });

  test("a connection that fails is an error of the state, and works later", async () => {
    server.refusal = new Error("no server");
    const page = await show();
    expect(page.text()).toBe("false false /0 no server");
    server.refusal = undefined;
    while (server.sockets.length === 0) await settle();
    await greet();
    expect(page.text()).toBe("true false /0");
  });

  test("rows stay while the connection is restored", async () => {
    const page = await showWith([row(1, "a")]);
    server.socket.drop();
    await settle();
    expect(page.text()).toContain("false true a/0 the server ended the connection");
    while (server.sockets.length === 1) await settle();
    await greet();
    await answer([row(1, "a"), row(2, "b")]);
    expect(page.text()).toBe("true true a,b/0");
  });

  test("calls wait for the connection", async () => {
    const { controls } = await show();
    const outcomes = Promise.allSettled([controls.add({ id: 1, name: "a" }), controls.double({ value: 4 })]);
    await greet();
    const calls = server.socket.take().filter(({ tag }) => tag === "Call");
    expect(calls).toMatchObject([{ name: "add_person" }, { name: "double_it" }]);
    server.socket.deliver(serverMessage.reducerError(calls[0]!.requestId, "no"));
    const eight = message((writer) => writer.writeU64(8n));
    server.socket.deliver(serverMessage.procedureResult(calls[1]!.requestId, eight));
    const [added, doubled] = await outcomes;
    expect(added).toMatchObject({ status: "rejected", reason: { message: "no" } });
    expect(doubled).toEqual({ status: "fulfilled", value: 8n });
  });

  test("calls have limits", async () => {
    const abort = new AbortController();
    const { controls } = await showWith([], { limits: { signal: abort.signal } });
    const outcome = controls.add({ id: 1, name: "a" });
    abort.abort();
    await expect(outcome).rejects.toBe(abort.signal.reason);
  });

  test.skipIf(house === angular)("another token is another connection", async () => {
    const page = await showWith([row(1, "a")]);
    page.controls.setBuilder(builder("ann"));
    await settle();
    expect(server.sockets.map(({ readyState }) => readyState)).toEqual([3, 0]);
    expect(server.attempts.map(({ authToken }) => authToken)).toEqual([undefined, "ann"]);
    expect(page.text()).toBe("false false /0");
    await greet("ann");
    await answer([row(2, "b")]);
    expect(page.text()).toBe("true true b/0");
  });

  test.skipIf(house === angular)("a refused token: another builder is another try", async () => {
    server.refusal = new ClientError("LC0832", "Failed to verify token: Unauthorized");
    const page = await show({ builder: builder("stale") });
    server.refusal = undefined;
    page.controls.setBuilder(builder("stale"));
    await settle();
    await greet();
    expect(page.text()).toBe("true false /0");
  });

  test("a page of a server is hydrated without a complaint, and connects then", async () => {
    const complaints = [vi.spyOn(console, "error"), vi.spyOn(console, "warn")];
    const html = await renderOnServer(house);
    expect(html).toContain("false false /0");
    const page = await show({}, html);
    const paragraph = document.querySelector("p");
    expect(page.seen).toEqual(["false false /0"]);
    await greet();
    await answer([row(1, "a")]);
    expect(page.text()).toContain("true true a/0");
    // The server's element is used.
    expect(document.querySelectorAll("p")).toHaveLength(1);
    expect(document.querySelector("p")).toBe(paragraph);
    for (const complaint of complaints) expect(complaint.mock.calls).toEqual([]);
  });

  test("outside of a provider it says so", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    vi.spyOn(console, "warn").mockImplementation(() => {});
    await expect(show({ isOrphan: true })).rejects.toThrow("LC0852");
  });
});
