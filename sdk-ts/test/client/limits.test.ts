// Limits of time: connecting, silence, calls; and what is left of subscriptions when a connection is over.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type ClientError, setGlobalLogLevel } from "../../src/client";
import { DbConnection, type DbConnectionBuilder } from "./bindings";
import { FakeServer, type FakeSocket, personBytes, serverMessage, settle, until } from "./fake_server";

let server: FakeServer;
let unhandled: unknown[];
const remember = (reason: unknown): void => void unhandled.push(reason);
beforeEach(() => {
  server = new FakeServer();
  unhandled = [];
  process.on("unhandledRejection", remember);
  setGlobalLogLevel("error");
});
afterEach(async () => {
  vi.useRealTimers();
  await settle();
  process.off("unhandledRejection", remember);
  expect(unhandled).toEqual([]);
});

const builder = (): DbConnectionBuilder =>
  DbConnection.builder().withUri("ws://localhost:1").withDatabaseName("x").withWSFn(server.factory);

async function connected(configure: (builder: DbConnectionBuilder) => DbConnectionBuilder = (b) => b) {
  const connection = configure(builder()).build();
  if (vi.isFakeTimers()) await vi.advanceTimersByTimeAsync(1);
  else await settle();
  server.socket.open();
  server.socket.deliver(serverMessage.initialConnection("secret"));
  return connection;
}
const codeOf = (error: unknown): string | undefined => (error as ClientError | undefined)?.code;

describe("connecting", () => {
  test("a server that does not answer is given up", async () => {
    const errors: unknown[] = [];
    const ask = (b: DbConnectionBuilder) =>
      b.withConnectTimeout(20).onConnectError((_, error) => errors.push(codeOf(error)));
    const connection = ask(builder()).build();
    await until("the end", () => connection.isClosed);
    expect(errors).toEqual(["LC0853"]);
    expect(server.socket.readyState).toBe(3);
  });

  test("each attempt has its time, and the time includes the token and the socket", async () => {
    const signals: AbortSignal[] = [];
    const connection = builder()
      .withConnectTimeout(20)
      .withWSFn(({ signal }) => {
        signals.push(signal!);
        return new Promise(() => {});
      })
      .withReconnect({ baseDelayMs: 0, maxAttempts: 2 })
      .build();
    await until("the end", () => connection.isClosed);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    const asking = builder()
      .withConnectTimeout(20)
      .withToken(() => new Promise(() => {}))
      .build();
    await until("the end", () => asking.isClosed);
    expect(codeOf(asking.connectionError)).toBe("LC0853");
  });

  test("a connection that was greeted in time stays", async () => {
    vi.useFakeTimers();
    const connection = await connected();
    await vi.advanceTimersByTimeAsync(40_000);
    expect(connection.isActive).toBe(true);
    connection.disconnect();
  });
});

describe("silence", () => {
  const isProbe = (socket: FakeSocket): boolean =>
    socket.received.some(({ tag, ...rest }) => tag === "Unsubscribe" && "querySetId" in rest);
  const answerProbe = (socket: FakeSocket): void => {
    for (const request of socket.take()) {
      if (request.tag !== "Unsubscribe") continue;
      socket.deliver(serverMessage.subscriptionError(request.requestId, request.querySetId, "not found"));
    }
  };

  test("is asked about, and a server that answers keeps the connection", async () => {
    vi.useFakeTimers();
    const connection = await connected();
    await vi.advanceTimersByTimeAsync(26_000);
    expect(server.socket.received).toEqual([]);
    for (let i = 0; i < 20; i++) {
      await vi.advanceTimersByTimeAsync(11_000 + 30_000);
      expect(server.socket.received).toHaveLength(1);
      expect(isProbe(server.socket)).toBe(true);
      answerProbe(server.socket);
    }
    expect(connection.isActive).toBe(true);
    expect(server.sockets).toHaveLength(1);
    connection.disconnect();
  });

  test("without an answer the connection is lost, and restored", async () => {
    vi.useFakeTimers();
    const reasons: unknown[] = [];
    const connection = await connected((b) =>
      b.onReconnecting((_, { error }) => reasons.push(codeOf(error))),
    );
    // A half-open socket: it takes what is sent, and never says anything again.
    await vi.advanceTimersByTimeAsync(80_000);
    expect(connection.isActive).toBe(true);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(reasons).toEqual(["LC0856"]);
    expect(server.sockets).toHaveLength(2);
    server.socket.open();
    server.socket.deliver(serverMessage.initialConnection("secret"));
    expect(connection.isActive).toBe(true);
    connection.disconnect();
  });

  test("a busy connection is not asked, and one that awaits rows has more time", async () => {
    vi.useFakeTimers();
    const connection = await connected((b) => b.withReconnect(false));
    for (let i = 0; i < 10; i++) {
      await vi.advanceTimersByTimeAsync(20_000);
      server.socket.deliver(serverMessage.transactionUpdate([]));
    }
    expect(server.socket.take()).toEqual([]);
    connection.subscriptionBuilder().subscribe("SELECT * FROM person");
    await vi.advanceTimersByTimeAsync(300_000);
    expect(connection.isActive).toBe(true);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(connection.isClosed).toBe(true);
  });

  test("can be allowed", async () => {
    const connection = await connected((b) => b.withKeepAlive(false));
    vi.useFakeTimers();
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(server.socket.take()).toEqual([]);
    expect(connection.isActive).toBe(true);
    connection.disconnect();
  });
});

describe("calls", () => {
  test("time out, sent or not, and their late answers are ignored", async () => {
    const connection = await connected();
    connection.subscriptionBuilder().subscribe("SELECT * FROM person");
    const events: string[] = [];
    connection.db.person.onInsert(({ event }, { name }) => events.push(`${event.tag} ${name}`));
    const call = connection.withOptions({ timeoutMs: 20 }).reducers.addPerson({ id: 1, name: "Al" });
    const error = await call.catch((thrown) => thrown);
    expect(codeOf(error)).toBe("LC0854");
    expect(error.message).toBe(
      "no answer to reducer add_person within 20 ms; it may or may not have been executed [LC0854]",
    );
    const row = personBytes({ id: 1, name: "Al" });
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "person", []));
    const delta = { querySetId: 0, table: "person", inserts: [row], deletes: [] };
    server.socket.deliver(serverMessage.reducerOk(1, [delta]));
    expect(events).toEqual(["Transaction Al"]);
    connection.disconnect();
  });

  test("that wait for a connection are taken back", async () => {
    const connection = builder().build();
    const limited = connection.withOptions({ timeoutMs: 20 });
    const calls = [limited.procedures.doubleIt({ value: 1 }), limited.oneOffQuery("SELECT * FROM person")];
    void connection.reducers.tick({}).catch(() => {});
    const errors = await Promise.all(calls.map((call) => call.catch((thrown: unknown) => thrown)));
    expect(errors.map(codeOf)).toEqual(["LC0854", "LC0854"]);
    expect((errors[0] as Error).message).toContain("it was not sent");
    server.socket.open();
    expect(server.socket.take()).toMatchObject([{ tag: "Call", name: "tick" }]);
    connection.disconnect();
  });

  test("end with the signal, before they are sent, while they are on their way, and not afterwards", async () => {
    const connection = await connected();
    const abort = new AbortController();
    const { reducers } = connection.withOptions({ signal: abort.signal });
    const done = reducers.tick({});
    await settle();
    server.socket.deliver(serverMessage.reducerOk(0, []));
    await done;
    const call = reducers.tick({}).catch((thrown) => thrown);
    await settle();
    abort.abort();
    expect((await call).name).toBe("AbortError");
    const late = await reducers.tick({}).catch((thrown) => thrown);
    expect(late).toBe(abort.signal.reason);
    await settle();
    expect(server.socket.take()).toHaveLength(2);
    connection.disconnect();
  });

  test("have the limit of the connection unless they have their own", async () => {
    const connection = await connected((b) => b.withCallTimeout(20));
    expect(codeOf(await connection.reducers.tick({}).catch((thrown) => thrown))).toBe("LC0854");
    const patient = connection.withOptions({ timeoutMs: 60_000 }).reducers.tick({});
    await new Promise((done) => setTimeout(done, 50));
    server.socket.deliver(serverMessage.reducerOk(1, []));
    await patient;
    connection.disconnect();
  });

  test("a limit that no timer knows is an error at once", async () => {
    const connection = await connected();
    for (const timeoutMs of [0, -1, Number.NaN, 2 ** 31]) {
      expect(() => connection.withOptions({ timeoutMs })).toThrow("LC0847");
      expect(() => builder().withCallTimeout(timeoutMs)).toThrow("LC0847");
      expect(() => builder().withConnectTimeout(timeoutMs)).toThrow("LC0847");
      expect(() => builder().withKeepAlive({ idleMs: timeoutMs })).toThrow("LC0847");
    }
    connection.disconnect();
  });
});

describe("a network that takes nothing", () => {
  const tick = (connection: DbConnection): Promise<void> => connection.reducers.tick({});

  test("is given no more than it can hold; calls wait, and those beyond the limit are rejected", async () => {
    const connection = await connected((b) => b.withQueuedRequestsMax(3));
    server.socket.bufferedAmount = 1e9;
    const waiting = [tick(connection), tick(connection), tick(connection)];
    await expect(tick(connection)).rejects.toMatchObject({
      code: "LC0835",
      message: expect.stringContaining("3 requests wait for the network"),
    });
    await settle();
    expect(server.socket.take()).toEqual([]);
    server.socket.bufferedAmount = 0;
    await until("the calls", () => server.socket.received.length === 3);
    for (const { requestId } of server.socket.take()) {
      server.socket.deliver(serverMessage.reducerOk(requestId, []));
    }
    await Promise.all(waiting);
    connection.disconnect();
  });

  test("holds few large calls only", async () => {
    const connection = await connected();
    server.socket.bufferedAmount = 1e9;
    const name = "x".repeat(20_000_000);
    const outcomes = Array.from({ length: 5 }, () => connection.reducers.addPerson({ id: 1, name }));
    await expect(outcomes.at(-1)).rejects.toMatchObject({ code: "LC0835" });
    connection.disconnect();
    await expect(outcomes[0]).rejects.toMatchObject({ code: "LC0834" });
    await Promise.allSettled(outcomes);
  });

  test("that is fast enough takes any number of calls of one turn", async () => {
    for (const limit of [0, 3]) {
      const connection = await connected((b) => b.withQueuedRequestsMax(limit));
      const outcomes = Array.from({ length: 50 }, () => tick(connection));
      await settle();
      for (const { requestId } of server.socket.take()) {
        server.socket.deliver(serverMessage.reducerOk(requestId, []));
      }
      await Promise.all(outcomes);
      connection.disconnect();
    }
  });
});

describe("subscriptions at the end", () => {
  const subscribe = (connection: DbConnection, log: string[], name: string) =>
    connection
      .subscriptionBuilder()
      .onApplied(() => log.push(`${name} applied`))
      .onError((_, error) => log.push(`${name} ${codeOf(error)}`))
      .subscribe(`SELECT * FROM person -- ${name}`);

  test.each([
    ["disconnect", (connection: DbConnection) => connection.disconnect()],
    ["a lost connection", () => server.socket.drop()],
  ])("%s", async (_, end) => {
    const log: string[] = [];
    const connection = await connected((b) => b.withReconnect(false));
    const [applied, waiting, ending] = ["applied", "waiting", "ending"].map((name) =>
      subscribe(connection, log, name),
    );
    await settle();
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "person", []));
    server.socket.deliver(serverMessage.subscribeApplied(2, 2, "person", []));
    ending!.unsubscribeThen(() => log.push("ending end"));
    await settle();
    log.length = 0;
    end(connection);
    await settle();
    for (const handle of [applied, waiting, ending]) {
      expect([handle!.isActive(), handle!.isEnded()]).toEqual([false, true]);
    }
    expect(log.sort()).toEqual(["ending end", "waiting LC0834"]);
    // There is nothing left to do.
    applied!.unsubscribe();
    waiting!.unsubscribeThen(() => log.push("waiting end"));
    await settle();
    expect(log).toContain("waiting end");
  });

  test("subscribe on a closed connection reports an error", async () => {
    const log: string[] = [];
    const connection = await connected();
    connection.disconnect();
    const early = subscribe(connection, log, "early");
    await settle();
    const late = subscribe(connection, log, "late");
    await settle();
    expect(log).toEqual(["early LC0834", "late LC0834"]);
    expect([early, late].map((handle) => [handle.isActive(), handle.isEnded()])).toEqual([
      [false, true],
      [false, true],
    ]);
  });

  test("a server that does not answer the close is not waited for", async () => {
    const ends: unknown[] = [];
    const connection = await connected((b) => b.onDisconnect((_, error) => ends.push(error)));
    server.socket.close = () => void (server.socket.readyState = 2);
    vi.useFakeTimers();
    connection.disconnect();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(ends).toEqual([undefined]);
    expect(connection.isActive).toBe(false);
  });
});
