// A connection that is lost and made again: nothing is lost or told twice.

import { describe, expect, test } from "vitest";
import type { ReconnectingInfo } from "../../src/client";
import { ClientError } from "../../src/client";
import type { DbConnection } from "./bindings";
import { builder, connected, names, reconnected, row, server } from "./connected";
import { serverMessage, settle, until } from "./fake_server";

/** The rows of a query set of a batch. */
const people = (querySetId: number, ...rows: Uint8Array[]) => ({ querySetId, table: "person", rows });

describe("reconnecting", () => {
  test("keeps the cache, subscribes again, and tells the differences only", async () => {
    const log: string[] = [];
    const connection = await connected((b) =>
      b
        .withReconnect({ baseDelayMs: 1 })
        .onConnect(() => log.push("connect"))
        .onReconnecting((_, { attempt }: ReconnectingInfo) => log.push(`reconnecting ${attempt}`))
        .onReconnect(({ db }) => log.push(`reconnect ${db.person.count()}`))
        .onDisconnect(() => log.push("disconnect")),
    );
    const { person } = connection.db;
    const handle = connection
      .subscriptionBuilder()
      .onApplied(() => log.push("applied"))
      .subscribe("SELECT * FROM person");
    await settle();
    server.socket.take();
    server.socket.deliver(
      serverMessage.subscribeApplied(0, 0, "person", [row(1, "same"), row(2, "old"), row(3, "gone")]),
    );
    const same = person.id.find(1);
    person.onInsert((_, { name }) => log.push(`+${name}`));
    person.onUpdate((_, old, { name }) => log.push(`${old.name}>${name}`));
    person.onDelete((_, { name }) => log.push(`-${name}`));

    server.socket.drop();
    await settle();
    expect(connection.isActive).toBe(false);
    expect(connection.isReconnecting).toBe(true);
    expect(person.count()).toBe(3n);
    await reconnected(1);
    expect(server.attempts[1]!.authToken).toBe("secret");
    expect(server.socket.take()).toMatchObject([
      { tag: "Subscribe", querySetId: 0, queries: ["SELECT * FROM person"] },
    ]);
    expect(connection.isActive).toBe(true);
    expect(person.count()).toBe(3n);
    server.socket.deliver(
      serverMessage.subscribeApplied(0, 0, "person", [row(4, "new"), row(1, "same"), row(2, "newer")]),
    );
    expect(log).toEqual([
      "connect",
      "applied",
      "reconnecting 1",
      "+new",
      "old>newer",
      "-gone",
      "reconnect 3",
    ]);
    expect(person.id.find(1)).toBe(same);
    expect(handle.isActive()).toBe(true);
    expect(connection.token).toBe("secret");
    connection.disconnect();
  });

  test("is the default without onDisconnect, and withReconnect(false) turns it off", async () => {
    const restored = await connected((b) => b);
    server.socket.drop();
    await until("another attempt", () => server.sockets.length === 2);
    restored.disconnect();
    await connected((b) => b.withReconnect(false));
    server.socket.drop();
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(server.sockets).toHaveLength(3);
  });

  test("updates that arrive before the last subscription is back are not lost", async () => {
    const connection = await connected((b) => b.withReconnect({ baseDelayMs: 0 }));
    connection.subscriptionBuilder().subscribe("SELECT * FROM person WHERE id < 10");
    connection.subscriptionBuilder().subscribe("SELECT * FROM person WHERE id >= 10");
    await settle();
    server.socket.deliver(
      serverMessage.subscribeApplied(0, 0, "person", [row(1, "a")]),
      serverMessage.subscribeApplied(1, 1, "person", [row(10, "b")]),
    );
    const log: string[] = [];
    connection.db.person.onUpdate((_, old, { name }) => log.push(`${old.name}>${name}`));
    server.socket.drop();
    await reconnected(1);
    server.socket.deliver(serverMessage.subscribeApplied(2, 0, "person", [row(1, "a")]));
    const delta = { querySetId: 0, table: "person", inserts: [row(1, "c")], deletes: [row(1, "a")] };
    server.socket.deliver(serverMessage.transactionUpdate([delta]));
    expect(names(connection)).toEqual(["a", "b"]);
    server.socket.deliver(serverMessage.subscribeApplied(3, 1, "person", [row(10, "b")]));
    expect(names(connection)).toEqual(["b", "c"]);
    expect(log).toEqual(["a>c"]);
    connection.disconnect();
  });

  test("calls on their way are rejected, calls made meanwhile are sent afterwards", async () => {
    const connection = await connected((b) => b.withReconnect({ baseDelayMs: 0 }).withQueuedRequestsMax(2));
    const onItsWay = connection.reducers.addPerson({ id: 1, name: "lost" }).catch((error) => error);
    await settle();
    server.socket.drop();
    const error = await onItsWay;
    expect(error.code).toBe("LC0833");
    expect(error.message).toContain("add_person");
    const waiting = [connection.reducers.tick({}), connection.reducers.tick({})];
    await expect(connection.reducers.tick({})).rejects.toMatchObject({ code: "LC0835" });
    await reconnected(1);
    const calls = server.socket.take();
    expect(calls).toMatchObject([{ name: "tick" }, { name: "tick" }]);
    for (const { requestId } of calls) server.socket.deliver(serverMessage.reducerOk(requestId, []));
    await Promise.all(waiting);
    connection.disconnect();
  });

  test("subscriptions that were not applied, or made meanwhile, are sent again in order", async () => {
    const connection = await connected((b) => b.withReconnect({ baseDelayMs: 0 }));
    const applied: number[] = [];
    const subscribe = (n: number) =>
      connection
        .subscriptionBuilder()
        .onApplied(() => applied.push(n))
        .subscribe(`SELECT * FROM person WHERE id = ${n}`);
    subscribe(0);
    await settle();
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "person", [row(0, "zero")]));
    subscribe(1);
    await settle();
    server.socket.drop();
    subscribe(2);
    const never = subscribe(3);
    let ended = false;
    never.unsubscribeThen(() => {
      ended = true;
    });
    expect(ended).toBe(true);
    await reconnected(1);
    const requests = server.socket.take() as { querySetId: number; requestId: number; queries: string[] }[];
    expect(requests.map(({ queries }) => queries[0]!.at(-1))).toEqual(["0", "1", "2"]);
    for (const { requestId, querySetId } of requests) {
      server.socket.deliver(
        serverMessage.subscribeApplied(requestId, querySetId, "person", [row(querySetId, "x")]),
      );
    }
    expect(applied).toEqual([0, 1, 2]);
    expect(connection.db.person.count()).toBe(3n);
    connection.disconnect();
  });

  test("what was unsubscribed meanwhile leaves the cache with the next connection", async () => {
    const connection = await connected((b) => b.withReconnect({ baseDelayMs: 0 }));
    const handle = connection.subscriptionBuilder().subscribe("SELECT * FROM person");
    await settle();
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "person", [row(1, "a")]));
    server.socket.drop();
    let atEnd: bigint | undefined;
    handle.unsubscribeThen(({ db }) => {
      atEnd = db.person.count();
    });
    await reconnected(1);
    expect(server.socket.take()).toEqual([]);
    expect(atEnd).toBe(0n);
    expect(handle.isEnded()).toBe(true);
    connection.disconnect();
  });

  test("a query that the server refuses after the reconnect takes its rows along", async () => {
    const connection = await connected((b) => b.withReconnect({ baseDelayMs: 0 }));
    const errors: string[] = [];
    connection
      .subscriptionBuilder()
      .onError(({ event }) => errors.push(String(event?.message)))
      .subscribe("SELECT * FROM person");
    await settle();
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "person", [row(1, "a")]));
    server.socket.drop();
    await reconnected(1);
    server.socket.deliver(serverMessage.subscriptionError(1, 0, "no such table"));
    expect(errors).toEqual(["no such table"]);
    expect(connection.db.person.count()).toBe(0n);
    connection.disconnect();
  });

  test("a subscription that the server gives up on: the others come back without its rows", async () => {
    const connection = await connected((b) => b.withReconnect({ baseDelayMs: 0 }));
    const errors: string[] = [];
    const subscribe = (query: string) =>
      connection
        .subscriptionBuilder()
        .onError(({ event }) => errors.push(String(event?.message)))
        .subscribe(query);
    subscribe("SELECT * FROM person WHERE id = 1");
    subscribe("SELECT * FROM person WHERE id = 2");
    await settle();
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "person", [row(1, "one")]));
    server.socket.deliver(serverMessage.subscribeApplied(1, 1, "person", [row(2, "two")]));
    server.socket.deliver(serverMessage.subscriptionError(undefined, 0, "view failed"));
    expect(errors).toEqual(["view failed"]);
    await reconnected(1);
    const requests = server.socket.take();
    expect(requests).toMatchObject([{ querySetId: 1 }]);
    server.socket.deliver(
      serverMessage.subscribeApplied(requests[0]!.requestId, 1, "person", [row(2, "two")]),
    );
    expect(names(connection)).toEqual(["two"]);
    connection.disconnect();
  });

  test("waits longer after each failure, gives up after maxAttempts, and says so once", async () => {
    const ends: any[] = [];
    const delays: number[] = [];
    const connection = await connected((b) =>
      b
        .withReconnect({ baseDelayMs: 4, maxDelayMs: 10, maxAttempts: 4 })
        .onReconnecting((_, { delayMs }) => delays.push(delayMs))
        .onDisconnect((_, error) => ends.push(error)),
    );
    server.refusal = new Error("still down");
    const waiting = (async () => {
      await settle();
      return connection.reducers.tick({}).catch((error) => error);
    })();
    server.socket.drop();
    await until("the end", () => ends.length > 0);
    expect(delays).toHaveLength(4);
    const longest = [4, 8, 10, 10];
    delays.forEach((delay, i) => {
      expect(delay).toBeGreaterThanOrEqual(longest[i]! / 2);
      expect(delay).toBeLessThanOrEqual(longest[i]!);
    });
    expect(ends).toMatchObject([{ code: "LC0850", cause: new Error("still down") }]);
    expect((await waiting).code).toBe("LC0834");
  });

  test("with withReconnect the first attempt is repeated as well", async () => {
    const errors: string[] = [];
    server.refusal = new Error("not yet");
    const connection = builder()
      .withReconnect({ baseDelayMs: 1 })
      .onConnectError((_, error) => errors.push(error.message))
      .build();
    await until("two attempts", () => errors.length >= 2);
    server.refusal = undefined;
    await until("a socket", () => server.sockets.length === 1);
    server.socket.open();
    server.socket.deliver(serverMessage.initialConnection());
    expect(connection.isActive).toBe(true);
    connection.disconnect();
  });

  describe("a message that cannot be inflated", () => {
    const damage = () => server.socket.drop(new ClientError("LC0843", "damaged"));
    const asked = () => server.attempts.map(({ compression }) => compression);

    test("is met by another attempt, then by one without compression, which stays", async () => {
      const connection = await connected((b) => b.withReconnect({ baseDelayMs: 0 }));
      for (let sockets = 1; sockets < 4; sockets++) {
        if (sockets < 3) damage();
        else server.socket.drop();
        await reconnected(sockets);
      }
      expect(asked()).toEqual(["gzip", "gzip", "none", "none"]);
      expect(connection.isActive).toBe(true);
      connection.disconnect();
    });

    test("again and again ends the connection", async () => {
      const ends: unknown[] = [];
      const connection = await connected((b) =>
        b.withReconnect({ baseDelayMs: 0 }).onDisconnect((_, error) => ends.push(error)),
      );
      for (let sockets = 1; sockets < 5; sockets++) {
        damage();
        await reconnected(sockets);
      }
      damage();
      await settle();
      expect(connection.isClosed).toBe(true);
      expect(ends).toMatchObject([{ code: "LC0850", cause: { code: "LC0843" } }]);
    });
  });

  test("disconnect while waiting ends it", async () => {
    const ends: unknown[] = [];
    const connection = await connected((b) =>
      b.withReconnect({ baseDelayMs: 200 }).onDisconnect((_, e) => ends.push(e)),
    );
    server.socket.drop();
    await settle();
    connection.disconnect();
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(ends).toEqual([undefined]);
    expect(server.sockets).toHaveLength(1);
  });

  test("a connection lost in the middle of restoring starts over", async () => {
    const connection = await connected((b) => b.withReconnect({ baseDelayMs: 0 }));
    connection.subscriptionBuilder().subscribe("SELECT * FROM person WHERE id = 1");
    connection.subscriptionBuilder().subscribe("SELECT * FROM person WHERE id = 2");
    await settle();
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "person", [row(1, "one")]));
    server.socket.deliver(serverMessage.subscribeApplied(1, 1, "person", [row(2, "two")]));
    const changes: string[] = [];
    connection.db.person.onDelete((_, { name }) => changes.push(`-${name}`));
    connection.db.person.onInsert((_, { name }) => changes.push(`+${name}`));
    server.socket.drop();
    await reconnected(1);
    server.socket.take();
    const later = connection.subscriptionBuilder().subscribe("SELECT * FROM person WHERE id = 3");
    await settle();
    server.socket.drop();
    await reconnected(2);
    expect(names(connection)).toEqual(["one", "two"]);
    const [batch, last] = server.socket.take();
    expect(last).toMatchObject({ tag: "Subscribe", querySetId: 2 });
    const results = [people(0, row(1, "one")), people(1)];
    server.socket.deliver(serverMessage.subscribeBatchApplied(batch!.requestId, results));
    server.socket.deliver(serverMessage.subscribeApplied(last!.requestId, 2, "person", []));
    expect(later.isActive()).toBe(true);
    expect(names(connection)).toEqual(["one"]);
    expect(changes).toEqual(["-two"]);
    connection.disconnect();
  });

  describe("several subscriptions", () => {
    const two = async (): Promise<{ connection: DbConnection; log: string[] }> => {
      const log: string[] = [];
      const connection = await connected((b) =>
        b.withReconnect({ baseDelayMs: 0 }).onReconnect(() => log.push("reconnect")),
      );
      for (const n of [0, 1]) {
        connection
          .subscriptionBuilder()
          .onError((_, error) => log.push(`${n}: ${error.message}`))
          .subscribe(`SELECT * FROM person WHERE id = ${n}`);
      }
      await settle();
      server.socket.deliver(
        serverMessage.subscribeApplied(0, 0, "person", [row(0, "zero")]),
        serverMessage.subscribeApplied(1, 1, "person", [row(1, "one"), row(2, "both")]),
      );
      const { person } = connection.db;
      person.onInsert((_, { name }) => log.push(`+${name}`));
      person.onUpdate((_, old, { name }) => log.push(`${old.name}>${name}`));
      person.onDelete((_, { name }) => log.push(`-${name}`));
      server.socket.drop();
      await reconnected(1);
      return { connection, log };
    };
    const taken = () => server.socket.take().map(({ tag }) => tag);

    test("come back in one batch, and only the differences are told", async () => {
      const { connection, log } = await two();
      const [batch, ...others] = server.socket.take();
      expect(others).toEqual([]);
      expect(batch).toMatchObject({
        tag: "SubscribeBatch",
        sets: [
          { querySetId: 0, queries: ["SELECT * FROM person WHERE id = 0"] },
          { querySetId: 1, queries: ["SELECT * FROM person WHERE id = 1"] },
        ],
      });
      server.socket.deliver(
        serverMessage.subscribeBatchApplied(batch!.requestId, [
          people(0, row(0, "nought")),
          people(1, row(2, "both")),
        ]),
      );
      expect(log).toEqual(["zero>nought", "-one", "reconnect"]);
      connection.disconnect();
    });

    test("one of which is refused", async () => {
      const { connection, log } = await two();
      const [batch] = server.socket.take();
      server.socket.deliver(
        serverMessage.subscribeBatchApplied(batch!.requestId, [
          { querySetId: 0, error: "no such table" },
          people(1, row(1, "one"), row(2, "both")),
        ]),
      );
      expect(log).toEqual(["0: no such table", "-zero", "reconnect"]);
      connection.disconnect();
    });

    test("are asked for one by one if all together are refused", async () => {
      const { connection, log } = await two();
      const [batch] = server.socket.take();
      server.socket.deliver(
        serverMessage.subscribeBatchApplied(batch!.requestId, [
          { querySetId: 0, error: "too much" },
          { querySetId: 1, error: "too much" },
        ]),
      );
      await settle();
      const requests = server.socket.take();
      expect(requests).toMatchObject([
        { tag: "Subscribe", querySetId: 0 },
        { tag: "Subscribe", querySetId: 1 },
      ]);
      expect(log).toEqual([]);
      server.socket.deliver(
        serverMessage.subscribeApplied(requests[0]!.requestId, 0, "person", [row(0, "zero")]),
        serverMessage.subscriptionError(requests[1]!.requestId, 1, "too much"),
      );
      expect(log).toEqual(["1: too much", "-one", "-both", "reconnect"]);
      connection.disconnect();
    });

    test("come back one by one from a server that knows no batch", async () => {
      const { connection, log } = await two();
      expect(taken()).toEqual(["SubscribeBatch"]);
      server.socket.drop(undefined, 1011);
      await reconnected(2);
      expect(taken()).toEqual(["Subscribe", "Subscribe"]);
      server.socket.deliver(
        serverMessage.subscribeApplied(4, 0, "person", [row(0, "zero")]),
        serverMessage.subscribeApplied(5, 1, "person", [row(1, "one"), row(2, "both")]),
      );
      expect(log).toEqual(["reconnect"]);
      // It is the same server, however the connection is lost.
      server.socket.drop();
      await reconnected(3);
      expect(taken()).toEqual(["Subscribe", "Subscribe"]);
      connection.disconnect();
    });
  });

  test("a session that the server still has: the next attempt follows soon", async () => {
    const delays: number[] = [];
    const connection = await connected((b) =>
      b
        .withReconnect({ baseDelayMs: 2, maxDelayMs: 60_000 })
        .onReconnecting((_, { attempt, delayMs }) => delays.push(attempt, delayMs)),
    );
    const session = server.attempts[0]!.sessionId!;
    expect(session).toMatch(/^[0-9a-f]{32}$/);
    server.socket.drop();
    for (let attempt = 1; attempt <= 5; attempt++) {
      await until("a socket", () => server.sockets.length === attempt + 1);
      server.socket.open();
      server.socket.drop(undefined, 4000);
    }
    await reconnected(6);
    expect(server.attempts.every(({ sessionId }) => sessionId === session)).toBe(true);
    expect(delays.filter((_, i) => i % 2 === 0)).toEqual([1, 1, 1, 1, 1, 1]);
    expect(Math.max(...delays)).toBeLessThanOrEqual(2);
    connection.disconnect();
    expect(server.attempts[0]!.graceMs).toBeUndefined();
    await connected((b) => b.withReconnect(false));
    expect(server.attempts.at(-1)!.sessionId).toBeUndefined();
    const patient = await connected((b) => b.withReconnect({ graceMs: 5000 }));
    expect(server.attempts.at(-1)!.graceMs).toBe(5000);
    patient.disconnect();
  });
});
