// The life of a connection: requests, answers, failures.

import { describe, expect, test, vi } from "vitest";
import {
  BinaryReader,
  type ClientError,
  DbConnectionBuilder,
  DbConnectionImpl,
  type ErrorContextInterface,
  InternalError,
  SenderError,
  schema,
  procedures as sdkProcedures,
  reducers as sdkReducers,
  setGlobalLogLevel,
  Timestamp,
  t,
  table,
} from "../../src/client";
import { DbConnection, tables } from "./bindings";
import { builder, connected, names, row, server } from "./connected";
import { message, serverMessage, settle, until } from "./fake_server";

describe("requests", () => {
  test("what is asked before the socket is open goes out in one payload, in order", async () => {
    const connection = builder().build();
    connection.subscriptionBuilder().subscribe("SELECT * FROM person");
    void connection.reducers.addPerson({ id: 1, name: "Alice" });
    connection.subscriptionBuilder().subscribe((query) => query.mark.where((mark) => mark.id.eq(3)));
    await settle();
    server.socket.open();
    expect(server.socket.payloads).toBe(1);
    const requests = server.socket.take();
    expect(requests).toMatchObject([
      { tag: "Subscribe", requestId: 0, querySetId: 0, queries: ["SELECT * FROM person"] },
      { tag: "Call", kind: "reducer", requestId: 1, name: "add_person" },
      {
        tag: "Subscribe",
        requestId: 2,
        querySetId: 1,
        queries: ['SELECT * FROM "mark" WHERE "mark"."id" = 3'],
      },
    ]);
    const call = requests[1] as { args: Uint8Array };
    expect(Buffer.from(call.args).toString("hex")).toBe("0100000005000000416c696365");
    connection.disconnect();
  });

  test("calls of one turn share payloads of at most 256 KiB", async () => {
    const connection = await connected();
    for (let i = 0; i < 10; i++) void connection.reducers.addPerson({ id: i, name: "x".repeat(50_000) });
    await settle();
    expect(server.socket.payloads).toBe(2);
    expect(server.socket.take()).toHaveLength(10);
    connection.disconnect();
  });

  test("a reducer resolves after its rows are in the cache, and callbacks know of it", async () => {
    const connection = await connected();
    connection.subscriptionBuilder().subscribe(tables.person);
    await settle();
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "person", []));
    const events: unknown[] = [];
    connection.db.person.onInsert(({ event }, { name }) => events.push([event.tag, name, event]));
    const call = connection.reducers.addPerson({ id: 5, name: "Eve" });
    await settle();
    const delta = { querySetId: 0, table: "person", inserts: [row(5, "Eve")], deletes: [] };
    server.socket.deliver(serverMessage.reducerOk(1, [delta]));
    await call;
    expect(names(connection)).toEqual(["Eve"]);
    expect(events).toMatchObject([
      [
        "Reducer",
        "Eve",
        {
          value: {
            timestamp: new Timestamp(1_700_000_000_000_000n),
            outcome: { tag: "Ok" },
            reducer: { name: "add_person", args: { id: 5, name: "Eve" } },
          },
        },
      ],
    ]);
    connection.disconnect();
  });

  test("the errors of a reducer", async () => {
    const connection = await connected();
    const refused = connection.reducers.tick({}).catch((error) => error);
    await settle();
    server.socket.deliver(serverMessage.reducerError(0, "not now"));
    expect(await refused).toBeInstanceOf(SenderError);
    expect((await refused).message).toBe("not now");
    const broken = connection.reducers.tick({}).catch((error) => error);
    await settle();
    server.socket.deliver(
      message((writer) => {
        writer.writeU8(6);
        writer.writeU32(1);
        writer.writeI64(0n);
        writer.writeU8(3);
        writer.writeString("boom");
      }),
    );
    expect(await broken).toBeInstanceOf(InternalError);
    connection.disconnect();
  });

  test("a failed call that is not awaited is logged and does no harm", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => {});
    const connection = await connected();
    void connection.reducers.tick({});
    await settle();
    server.socket.deliver(serverMessage.reducerError(0, "no listener"));
    await settle();
    expect(log.mock.calls.flat().map(String).join(" ")).toMatch(/reducer tick failed.*no listener/);
    connection.disconnect();
    void connection.reducers.tick({});
    await settle();
  });

  test("arguments that do not fit reject the call", async () => {
    const connection = await connected();
    const call = connection.reducers.addPerson({ id: 1n as never, name: "x" });
    await expect(call).rejects.toMatchObject({ code: "LC0838" });
    connection.disconnect();
  });

  test.each<[what: string, args: unknown, reason: string]>([
    ["a missing text", { id: 1 }, "argument name: expected a string, got undefined"],
    ["no text", { id: 1, name: null }, "argument name: expected a string, got null"],
    [
      "a number too large",
      { id: 2 ** 32 + 5, name: "" },
      "argument id: expected an integer from 0 to 4294967295, got number 4294967301",
    ],
    [
      "a negative number",
      { id: -1, name: "" },
      "argument id: expected an integer from 0 to 4294967295, got number -1",
    ],
    [
      "a fraction",
      { id: 1.5, name: "" },
      "argument id: expected an integer from 0 to 4294967295, got number 1.5",
    ],
    [
      "no number",
      { id: Number.NaN, name: "" },
      "argument id: expected an integer from 0 to 4294967295, got number NaN",
    ],
    [
      "a bigint",
      { id: 5n, name: "" },
      "argument id: expected an integer from 0 to 4294967295, got bigint 5n",
    ],
    [
      "digits",
      { id: "5", name: "" },
      'argument id: expected an integer from 0 to 4294967295, got string "5"',
    ],
    [
      "an object",
      { id: {}, name: "" },
      "argument id: expected an integer from 0 to 4294967295, got an object",
    ],
    ["an argument by itself", "Al", 'the arguments: expected an object, got string "Al"'],
    ["nothing", null, "the arguments: expected an object, got null"],
  ])("%s is no argument, and nothing is sent", async (_, args, reason) => {
    const connection = await connected();
    const error = await connection.reducers.addPerson(args as never).catch((thrown) => thrown);
    expect(error.message).toBe(`reducer add_person was not sent: ${reason} [LC0838]`);
    const procedure = await connection.procedures.doubleIt({ value: "4" } as never).catch((thrown) => thrown);
    expect(procedure.message).toMatch(
      /^procedure double_it was not sent: argument value: expected an integer/,
    );
    await settle();
    expect(server.socket.take()).toEqual([]);
    connection.disconnect();
  });

  test("a procedure resolves with its value", async () => {
    const connection = await connected();
    const call = connection.procedures.doubleIt({ value: 21 });
    await settle();
    const [request] = server.socket.take();
    expect(request).toMatchObject({ tag: "Call", kind: "procedure", name: "double_it" });
    server.socket.deliver(
      serverMessage.procedureResult(
        0,
        message((writer) => writer.writeU64(42n)),
      ),
    );
    expect(await call).toBe(42n);
    connection.disconnect();
  });

  test("a one-off query returns rows and leaves the cache alone", async () => {
    const connection = await connected();
    const answer = connection.oneOffQuery(tables.person.where((person) => person.id.lt(3)));
    await settle();
    expect(server.socket.take()).toEqual([
      { tag: "OneOffQuery", requestId: 0, query: 'SELECT * FROM "person" WHERE "person"."id" < 3' },
    ]);
    server.socket.deliver(serverMessage.oneOffResult(0, "person", [row(1, "A"), row(2, "B")]));
    expect(await answer).toEqual([
      { id: 1, name: "A" },
      { id: 2, name: "B" },
    ]);
    expect(connection.db.person.count()).toBe(0n);
    connection.disconnect();
  });
});

describe("subscriptions", () => {
  test("applied, then rows' callbacks; unsubscribeThen, then rows' callbacks", async () => {
    const connection = await connected();
    const log: string[] = [];
    connection.db.person.onInsert(({ event }, { name }) => log.push(`+${name} ${event.tag}`));
    connection.db.person.onDelete(({ event }, { name }) => log.push(`-${name} ${event.tag}`));
    const handle = connection
      .subscriptionBuilder()
      .onApplied((ctx) => log.push(`applied ${ctx.db.person.count()}`))
      .subscribe("SELECT * FROM person");
    expect([handle.isActive(), handle.isEnded()]).toEqual([false, false]);
    await settle();
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "person", [row(1, "A")]));
    expect([handle.isActive(), handle.isEnded()]).toEqual([true, false]);
    handle.unsubscribeThen((ctx) => log.push(`end ${ctx.db.person.count()}`));
    expect(() => handle.unsubscribe()).toThrow("LC0849");
    await settle();
    server.socket.deliver(serverMessage.unsubscribeApplied(1, 0, "person", [row(1, "A")]));
    expect([handle.isActive(), handle.isEnded()]).toEqual([false, true]);
    expect(log).toEqual(["applied 1", "+A SubscribeApplied", "end 0", "-A UnsubscribeApplied"]);
    connection.disconnect();
  });

  test("a refused query is an error with the server's text and a code", async () => {
    const connection = await connected();
    const errors: [Error | undefined, Error][] = [];
    const handle = connection
      .subscriptionBuilder()
      .onError((ctx: ErrorContextInterface<any>, error: Error) => errors.push([ctx.event, error]))
      .subscribe("SELECT * FROM nothing");
    await settle();
    server.socket.deliver(serverMessage.subscriptionError(0, 0, "no such table: `nothing`"));
    expect(errors).toHaveLength(1);
    expect(errors[0]![0]).toBe(errors[0]![1]);
    expect(errors[0]![1]).toMatchObject({ message: "no such table: `nothing`", code: "LC0836" });
    expect((errors[0]![1] as ClientError).docsUrl).toMatch(/LC0836\.md$/);
    expect(handle.isEnded()).toBe(true);
    connection.disconnect();
  });

  test("rows of a table that the bindings lack are skipped, once with a warning", async () => {
    setGlobalLogLevel("warn");
    const log = vi.spyOn(console, "warn").mockImplementation(() => {});
    const connection = await connected();
    connection.subscriptionBuilder().subscribe(["SELECT * FROM person", "SELECT * FROM newer"]);
    await settle();
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "newer", [row(1, "A")]));
    const delta = { querySetId: 0, table: "newer", inserts: [row(2, "B")], deletes: [] };
    server.socket.deliver(serverMessage.transactionUpdate([delta]));
    expect(log).toHaveBeenCalledTimes(1);
    expect(connection.isActive).toBe(true);
    connection.disconnect();
  });

  test("events are plain, and what a context offers can be taken out of it", async () => {
    const connection = await connected();
    const contexts: Parameters<Parameters<typeof connection.db.person.onInsert>[0]>[0][] = [];
    connection.db.person.onInsert((context) => contexts.push(context));
    connection.subscriptionBuilder().subscribe("SELECT * FROM person");
    await settle();
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "person", [row(1, "A"), row(2, "B")]));
    const delta = { querySetId: 0, table: "person", inserts: [row(3, "C")], deletes: [] };
    server.socket.deliver(serverMessage.transactionUpdate([delta]));
    const [first, second, third] = contexts.map(({ event }) => event);
    expect(first!.id).toBe(second!.id);
    expect(JSON.parse(JSON.stringify(first))).toEqual({ id: first!.id, tag: "SubscribeApplied" });
    expect({ ...third }).toEqual({ id: third!.id, tag: "Transaction" });
    expect(third!.id).not.toBe(first!.id);
    expect(new Proxy(third!, {}).id).toBe(third!.id);
    const { subscriptionBuilder, disconnect } = { ...contexts[2]! };
    expect(subscriptionBuilder()).toBeDefined();
    disconnect();
    await settle();
    expect(connection.isActive).toBe(false);
  });

  test("a callback that throws does not keep others from being called", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => {});
    const connection = await connected();
    const seen: number[] = [];
    connection.db.person.onInsert(() => {
      throw new Error("mistake");
    });
    connection.db.person.onInsert(async () => {
      throw new Error("mistake of an async function");
    });
    connection.db.person.onInsert((_, { id }) => seen.push(id));
    connection.subscriptionBuilder().subscribe("SELECT * FROM person");
    await settle();
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "person", [row(1, "A"), row(2, "B")]));
    await settle();
    expect(seen).toEqual([1, 2]);
    expect(log).toHaveBeenCalledTimes(4);
    expect(String(log.mock.calls[0])).toContain("LC0848");
    connection.disconnect();
  });

  test("rows of an event table are announced and not kept", async () => {
    const connection = await connected();
    const seen: number[] = [];
    connection.db.boom.onInsert((_, { id }) => seen.push(id));
    connection.subscriptionBuilder().subscribe("SELECT * FROM boom");
    await settle();
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "boom", []));
    server.socket.deliver(
      message((writer) => {
        writer.writeBytes(
          Buffer.from(
            "04 01000000 00000000 01000000 04000000 626f6f6d 01000000 01".replaceAll(" ", ""),
            "hex",
          ),
        );
        writer.writeBytes(Buffer.from("00 0400 08000000 09000000 0a000000".replaceAll(" ", ""), "hex"));
      }),
    );
    expect(seen).toEqual([9, 10]);
    expect(connection.db.boom.count()).toBe(0n);
    connection.disconnect();
  });

  test("subscribeToAllTables", async () => {
    const connection = await connected();
    connection.subscriptionBuilder().subscribeToAllTables();
    await settle();
    expect(server.socket.take()).toMatchObject([
      {
        queries: ["SELECT * FROM person", "SELECT * FROM mark", "SELECT * FROM badge", "SELECT * FROM boom"],
      },
    ]);
    connection.disconnect();
  });
});

describe("large results", () => {
  const rows = (count: number): Uint8Array[] => Array.from({ length: count }, (_, i) => row(i, `n${i}`));

  test("become visible at once, after slices in which other tasks run", async () => {
    const connection = await connected();
    connection.subscriptionBuilder().subscribe("SELECT * FROM person");
    await settle();
    const applied = serverMessage.subscribeApplied(0, 0, "person", rows(100_000));
    const update = { querySetId: 0, table: "person", inserts: [row(1, "new")], deletes: [row(1, "n1")] };
    const inserted: number[] = [];
    let [updates, tasks] = [0, 0];
    connection.db.person.onInsert((_, { id }) => inserted.push(id));
    connection.db.person.onUpdate(() => {
      expect(inserted).toHaveLength(100_000);
      updates += 1;
    });
    const counts = new Set<bigint>();
    const timer = setInterval(() => {
      tasks += 1;
      counts.add(connection.db.person.count());
    });
    server.socket.deliver(applied);
    // It must not overtake, although it could be applied now.
    server.socket.deliver(serverMessage.transactionUpdate([update]));
    await until("the update", () => updates === 1);
    clearInterval(timer);
    expect(connection.db.person.id.find(1)?.name).toBe("new");
    expect([...connection.db.person.id.filter(1)]).toEqual([connection.db.person.id.find(1)]);
    expect(connection.db.person.count()).toBe(100_000n);
    expect(tasks).toBeGreaterThan(1);
    expect([...counts].every((count) => count === 0n || count === 100_000n)).toBe(true);
    connection.disconnect();
  });

  test("the answer to a one-off query is decoded in slices", async () => {
    const connection = await connected();
    connection.subscriptionBuilder().subscribe("SELECT * FROM person");
    await settle();
    const done: string[] = [];
    const answer = connection.oneOffQuery("SELECT * FROM person").then((found) => {
      done.push("answer");
      return found;
    });
    connection.db.person.onInsert(() => done.push("row"));
    await settle();
    let tasks = 0;
    const timer = setInterval(() => (tasks += 1));
    server.socket.deliver(serverMessage.oneOffResult(1, "person", rows(200_000)));
    server.socket.deliver(serverMessage.subscribeApplied(0, 0, "person", [row(1, "A")]));
    expect(await answer).toHaveLength(200_000);
    await until("the row", () => done.length === 2);
    clearInterval(timer);
    expect(done.sort()).toEqual(["answer", "row"]);
    expect(tasks).toBeGreaterThan(1);
    connection.disconnect();
  });
});

test("a listener can stop with what it got", async () => {
  const connection = await connected();
  const heard: string[] = [];
  const stops = [
    connection.db.person.onInsert(() => heard.push("insert")),
    connection.db.person.onUpdate(() => heard.push("update")),
    connection.db.person.onDelete(() => heard.push("delete")),
  ];
  const change = (inserts: Uint8Array[], deletes: Uint8Array[]): void =>
    server.socket.deliver(
      serverMessage.transactionUpdate([{ querySetId: 0, table: "person", inserts, deletes }]),
    );
  const [before, after] = [row(1, "a"), row(1, "b")];
  for (let round = 0; round < 2; round++) {
    change([before], []);
    change([after], [before]);
    change([], [after]);
    for (const stop of stops) stop();
  }
  expect(heard).toEqual(["insert", "update", "delete"]);
});

test("browsers without URL.canParse will do", () => {
  vi.stubGlobal("URL", class extends URL {});
  Object.defineProperty(URL, "canParse", { value: undefined });
  expect(builder().withUri("wss://example.org").getUri()).toBe("wss://example.org/");
  expect(() => builder().withUri("example")).toThrow("LC0847");
  vi.unstubAllGlobals();
});

test("indexes may have the names of anything inside of the cache", async () => {
  const words = ["prepare", "commit", "announce", "decode", "views", "version", "rows", "facade", "isEmpty"];
  const columns = Object.fromEntries(words.map((word) => [word, t.u32().index("btree")]));
  const things = table({ name: "things" }, { id: t.u32().primaryKey(), ...columns });
  const module = {
    versionInfo: { cliVersion: "2.10.1" },
    ...schema({ things }).schemaType,
    ...sdkReducers().reducersType,
    ...sdkProcedures(),
  };
  const connection = new DbConnectionBuilder(module as any, (config) => new DbConnectionImpl<any>(config))
    .withUri("ws://localhost:1")
    .withDatabaseName("x")
    .withWSFn(server.factory)
    .build();
  await settle();
  server.socket.open();
  server.socket.deliver(serverMessage.initialConnection("secret"));
  connection.subscriptionBuilder().subscribe("SELECT * FROM things");
  await settle();
  const bytes = message((writer) => [1, ...words.map((_, i) => i)].forEach((n) => void writer.writeU32(n)));
  server.socket.deliver(serverMessage.subscribeApplied(0, 0, "things", [bytes]));
  const db = connection.db as any;
  expect(db.things.count()).toBe(1n);
  words.forEach((word, i) => void expect([...db.things[word].filter(i)]).toHaveLength(1));
  connection.disconnect();
});

describe("the end", () => {
  test("disconnect", async () => {
    const ends: unknown[] = [];
    const connection = await connected((b) => b.onDisconnect((_, error) => ends.push(error)));
    const late = connection.reducers.tick({}).catch((error) => error);
    connection.disconnect();
    await settle();
    expect(ends).toEqual([undefined]);
    expect(connection.isActive).toBe(false);
    expect((await late).code).toBe("LC0834");
    await expect(connection.reducers.tick({})).rejects.toMatchObject({ code: "LC0834" });
    expect(server.sockets).toHaveLength(1);
  });

  test("with onDisconnect and without withReconnect a loss is final, as in the published package", async () => {
    const ends: unknown[] = [];
    const connection = await connected((b) => b.onDisconnect((_, error) => ends.push(error)));
    const call = connection.reducers.tick({}).catch((error) => error);
    await settle();
    server.socket.drop(new Error("cable"));
    await settle();
    expect(ends).toHaveLength(1);
    expect(String(ends[0])).toMatch(/cable.*LC0831/);
    expect((await call).code).toBe("LC0833");
    expect(server.sockets).toHaveLength(1);
  });

  test("a connection that cannot be made", async () => {
    const errors: Error[] = [];
    server.refusal = new Error("no route");
    builder()
      .onConnectError((_, error) => errors.push(error))
      .build();
    await settle();
    expect(errors.map(String)).toEqual(["Error: no route"]);
    expect(server.attempts).toHaveLength(1);
  });

  test("a server that ends the connection before it answers", async () => {
    const errors: Error[] = [];
    builder()
      .onConnectError((_, error) => errors.push(error))
      .onConnect(() => errors.push(new Error("connected")))
      .build();
    await settle();
    server.socket.open();
    server.socket.drop();
    await settle();
    expect(errors.map(String)).toEqual([expect.stringMatching(/client_connected.*LC0831/)]);
  });

  test("a message that cannot be decoded ends the connection, whatever may follow", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => {});
    const ends: any[] = [];
    const connection = await connected((b) => b.withReconnect().onDisconnect((_, error) => ends.push(error)));
    server.socket.deliver(new Uint8Array([99]));
    server.socket.deliver(new Uint8Array([98]));
    await settle();
    expect(ends).toMatchObject([{ code: "LC0840" }]);
    expect(log).toHaveBeenCalledTimes(1);
    expect(connection.isActive).toBe(false);
    expect(server.sockets).toHaveLength(1);
  });

  test("a row that does not fit the bindings ends the connection and leaves the cache as it was", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const ends: any[] = [];
    const connection = await connected((b) => b.onDisconnect((_, error) => ends.push(error)));
    connection.subscriptionBuilder().subscribe("SELECT * FROM person");
    await settle();
    server.socket.deliver(
      serverMessage.subscribeApplied(0, 0, "person", [row(1, "A"), new Uint8Array([1, 2])]),
    );
    await settle();
    expect(ends).toMatchObject([{ code: "LC0842" }]);
    expect(connection.db.person.count()).toBe(0n);
  });

  test.each([
    ["withUri", () => DbConnection.builder().withDatabaseName("x").build()],
    ["withDatabaseName", () => DbConnection.builder().withUri("ws://localhost").build()],
    ["not a URL", () => DbConnection.builder().withUri("localhost:3000")],
  ])("a builder without %s", (_, build) => {
    expect(build).toThrow("LC0847");
  });
});

test("the first payload is the one that the protocol's description shows", async () => {
  const connection = builder().build();
  connection.subscriptionBuilder().subscribe("SELECT * FROM person");
  await settle();
  const sent: Uint8Array[] = [];
  server.socket.send = (payload) => void sent.push(payload);
  server.socket.open();
  expect(sent.map((payload) => Buffer.from(payload).toString("hex"))).toEqual([
    "00000000000000000001000000" + "14000000" + "53454c454354202a2046524f4d20706572736f6e",
  ]);
  expect(new BinaryReader(sent[0]!).readU8()).toBe(0);
  connection.disconnect();
});
