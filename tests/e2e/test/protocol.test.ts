// What is on the wire, message by message: sub-protocols v2 and v3, handshakes, and what ends a connection.

import { connect as connectTcp } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { RawClient } from "../src/raw-client";
import { Server, until, wasm } from "../src/server";
import { message, type QuerySetUpdate, Writer } from "../src/wire";

let server: Server;

beforeAll(async () => {
  server = await Server.start("[limits]\nmessage-bytes-max = 1048576\n");
  await server.publish("bank", wasm("transfer"));
  await server.publish("all", wasm("coverage"));
});
afterAll(() => server?.stop());

const seed = (n: number, balance: bigint): Buffer => new Writer().u32(n).i64(balance).done();
const transfer = (from: number, to: number, amount: bigint): Buffer =>
  new Writer().u32(from).u32(to).i64(amount).done();
const account = (id: number, balance: bigint): string =>
  new Writer().u32(id).i64(balance).done().toString("hex");
const hex = (rows: Buffer[]): string[] => rows.map((row) => row.toString("hex")).sort();
const plain = (sets: QuerySetUpdate[]) =>
  sets.map((set) => ({
    querySet: set.querySet,
    tables: set.tables.map((t) => ({ table: t.table, inserts: hex(t.inserts), deletes: hex(t.deletes) })),
  }));

describe.each(["v2", "v3"] as const)("%s", (protocol) => {
  test("a conversation, byte for byte", async () => {
    const a = await RawClient.connect(server.url, "bank", { protocol });
    const b = await RawClient.connect(server.url, "bank", { protocol, token: a.token });
    expect(a.socket.protocol).toBe(`${protocol}.bsatn.spacetimedb`);
    expect(b.identity).toBe(a.identity);
    expect(b.token).toBe(a.token);

    expect(await a.call("seed", seed(3, 100n))).toEqual({ kind: "Ok", querySets: [] });
    const applied = await a.subscribe(7, "SELECT * FROM accounts WHERE id = 1", " SELECT * FROM accounts ");
    expect(applied).toMatchObject({ type: "SubscribeApplied", querySet: 7 });
    const tables = applied.type === "SubscribeApplied" ? applied.tables : [];
    expect(tables.map((t) => [t.table, hex(t.rows)])).toEqual([
      ["accounts", [account(1, 100n)]],
      ["accounts", [account(0, 100n), account(1, 100n), account(2, 100n)].sort()],
    ]);
    await b.subscribe(1, "SELECT * FROM accounts WHERE id = 1 AND balance = 90");

    const own = await a.call("transfer", transfer(1, 2, 10n));
    expect(own.kind).toBe("Ok");
    // Two queries of one set matched row 1: it is deleted twice and inserted twice.
    expect(own.kind === "Ok" && plain(own.querySets)).toEqual([
      {
        querySet: 7,
        tables: [
          {
            table: "accounts",
            inserts: [account(1, 90n), account(1, 90n), account(2, 110n)].sort(),
            deletes: [account(1, 100n), account(1, 100n), account(2, 100n)].sort(),
          },
        ],
      },
    ]);
    const foreign = await b.expect("TransactionUpdate");
    expect(plain(foreign.querySets)).toEqual([
      { querySet: 1, tables: [{ table: "accounts", inserts: [account(1, 90n)], deletes: [] }] },
    ]);

    expect(await a.call("transfer", transfer(1, 1, 1n))).toEqual({ kind: "Err", error: "same_account" });
    expect(await a.call("no_such")).toEqual({ kind: "InternalError", error: "no such reducer" });
    expect(await a.call("seed", Buffer.from([1, 2]))).toMatchObject({
      kind: "InternalError",
      error: expect.stringMatching(
        /^invalid arguments for reducer seed: .*data too short for u32: Expected 4, given 2/,
      ),
    });
    // Surplus bytes after the last argument are ignored.
    expect((await a.call("transfer", Buffer.concat([transfer(2, 0, 1n), Buffer.from("more")]))).kind).toBe(
      "Ok",
    );

    a.send(message.unsubscribe(50, 7, true));
    const left = await a.expect("UnsubscribeApplied");
    expect(left.requestId).toBe(50);
    const held = (left.tables ?? []).flatMap((t) => hex(t.rows)).sort();
    expect(held).toEqual([account(0, 101n), account(1, 90n), account(1, 90n), account(2, 109n)].sort());
    a.send(message.unsubscribe(51, 7, true));
    expect(await a.expect("SubscriptionError")).toMatchObject({ requestId: 51, querySet: 7 });
    await b.subscribe(2, "SELECT * FROM accounts");
    b.send(message.unsubscribe(52, 2, false));
    expect(await b.expect("UnsubscribeApplied")).toMatchObject({ requestId: 52, tables: undefined });
    await a.close();
    await b.close();
  });

  test("one-off queries", async () => {
    const client = await RawClient.connect(server.url, "bank", { protocol });
    await client.call("seed", seed(5, 3n));
    const found = await client.query("SELECT * FROM accounts WHERE id = 4");
    expect(found.tables?.map((t) => [t.table, hex(t.rows)])).toEqual([["accounts", [account(4, 3n)]]]);
    const none = await client.query("SELECT * FROM accounts WHERE id = 4242");
    expect(none.tables).toEqual([{ table: "accounts", rows: [] }]);
    for (const [sql, error] of [
      ["SELECT * FROM nothing", "no such table: `nothing`"],
      [
        "SELECT id FROM accounts",
        "Column projections are not supported in subscriptions; Subscriptions must return a table type",
      ],
      ["DELETE FROM accounts", "Unsupported: Non-SELECT queries"],
      ["", ""],
    ]) {
      expect((await client.query(sql)).error, sql).toContain(error);
    }
    expect((await client.query("SELECT * FROM accounts")).tables?.[0].rows).toHaveLength(5);
    await client.close();
  });

  test("subscription errors name the query and leave the connection open", async () => {
    const client = await RawClient.connect(server.url, "bank", { protocol });
    const sql = "SELECT * FROM nothing WHERE a = 1";
    expect(await client.subscribe(1, "SELECT * FROM accounts", sql)).toMatchObject({
      type: "SubscriptionError",
      querySet: 1,
      error: `no such table: \`nothing\`. If the table exists, it may be marked private., executing: \`${sql}\``,
    });
    expect(await client.subscribe(1, "SELECT * FROM accounts")).toMatchObject({ type: "SubscribeApplied" });
    const twice = await client.subscribe(1, "SELECT * FROM accounts");
    expect(twice).toMatchObject({
      type: "SubscriptionError",
      error: expect.stringContaining("already exists for client"),
    });
    expect(await client.subscribe(2)).toMatchObject({ type: "SubscribeApplied", tables: [] });
    await client.close();
  });

  const bad: [string, Buffer | string, string][] = [
    ["an unknown tag", Buffer.from([9]), "unknown tag 0x9 for sum type ClientMessage"],
    ["a truncated number", Buffer.from([0, 1, 2]), "data too short for u32: Expected 4, given 2"],
    [
      "text that is not UTF-8",
      new Writer()
        .u8(2)
        .u32(1)
        .bytes(Buffer.from([0xff, 0xfe]))
        .done(),
      "invalid utf8",
    ],
    ["a reducer flag", message.callReducer(1, "seed", Buffer.alloc(0), 1), "invalid call reducer flag 1"],
    ["a procedure flag", message.callProcedure(1, "p", Buffer.alloc(0), 1), "invalid call procedure flag 1"],
    [
      "an empty message",
      Buffer.alloc(0),
      protocol === "v2"
        ? "data too short for u8: Expected 1, given 0"
        : "v3 websocket binary payload must contain at least one v2 client message",
    ],
    ["a text message", "hello", `${protocol} websocket does not support text messages`],
  ];
  test.each(bad)("%s closes the connection with 1011", async (_, payload, reason) => {
    const client = await RawClient.connect(server.url, "bank", { protocol });
    client.socket.send(payload, { binary: typeof payload !== "string" });
    expect(await client.closed).toEqual({ code: 1011, reason });
  });

  test("an impossible length is refused without allocating it", async () => {
    const client = await RawClient.connect(server.url, "bank", { protocol });
    client.send(new Writer().u8(0).u32(1).u32(1).u32(0xffffffff).done());
    expect((await client.closed).code).toBe(1011);
  });

  test("an oversized message drops the connection without a Close; one of the largest size is accepted", async () => {
    const client = await RawClient.connect(server.url, "all", { protocol });
    const args = (bytes: number) => new Writer().u32(1).string("x".repeat(bytes)).done();
    expect((await client.call("set_mark", args(1024 * 1024 - 100))).kind).toBe("Ok");
    client.send(message.callReducer(1, "set_mark", args(1024 * 1024)));
    expect((await client.closed).code).toBe(1006);
    const next = await RawClient.connect(server.url, "all", { protocol });
    expect((await next.call("set_mark", args(1))).kind).toBe("Ok");
    await next.close();
  });
});

test("v3: messages before a malformed one have been handled", async () => {
  const client = await RawClient.connect(server.url, "all");
  client.send(
    message.callReducer(1, "set_mark", new Writer().u32(77).string("before the junk").done()),
    Buffer.from([9]),
  );
  expect((await client.closed).code).toBe(1011);
  await until(
    "the mark is there",
    async () => (await server.sql("all", "SELECT * FROM marks WHERE id = 77")).length === 1,
  );
});

test("v3: many calls in one payload are answered in order", async () => {
  const client = await RawClient.connect(server.url, "bank");
  await client.call("seed", seed(2, 1000n));
  client.send(
    ...Array.from({ length: 500 }, (_, i) =>
      message.callReducer(i, "transfer", transfer(i % 2, (i + 1) % 2, 1n)),
    ),
  );
  for (let i = 0; i < 500; i++)
    expect(await client.expect("ReducerResult")).toMatchObject({ requestId: i, outcome: { kind: "Ok" } });
  await client.close();
});

test("a procedure answers with its value; a lifecycle reducer cannot be called", async () => {
  const client = await RawClient.connect(server.url, "all");
  client.send(message.callProcedure(3, "add_numbers", new Writer().i64(40n).i64(2n).done()));
  const result = await client.expect("ProcedureResult");
  expect(result.requestId).toBe(3);
  expect(result.value).toEqual(new Writer().i64(42n).done());
  client.send(message.callProcedure(4, "add_numbers", Buffer.alloc(15)));
  expect((await client.expect("ProcedureResult")).error).toMatch(
    /^invalid arguments for procedure add_numbers: /,
  );
  expect(await client.call("client_connected")).toMatchObject({
    kind: "InternalError",
    error: expect.stringContaining("can't directly call special"),
  });
  await client.close();
});

test("a private table is hidden from strangers and open to the owner", async () => {
  const stranger = await RawClient.connect(server.url, "all");
  expect((await stranger.query("SELECT * FROM secrets")).error).toContain("it may be marked private");
  expect(await stranger.subscribe(1, "SELECT * FROM secrets")).toMatchObject({ type: "SubscriptionError" });
  await stranger.close();
  const owner = await RawClient.connect(server.url, "all", { token: server.ownerToken() });
  await owner.call("add_secret", new Writer().u32(1).string("s").done());
  expect((await owner.query("SELECT * FROM secrets")).tables?.[0].rows).toHaveLength(1);
  await owner.close();
});

describe("handshakes", () => {
  const upgrade = {
    connection: "upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-protocol": "v3.bsatn.spacetimedb",
  };
  // fetch() would not send Upgrade headers.
  const request = (
    path: string,
    headers: Record<string, string>,
  ): Promise<{ status: number; body: string }> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(server.url);
      const socket = connectTcp(Number(port), hostname);
      const lines = Object.entries({ host: "localhost", ...headers }).map(
        ([name, value]) => `${name}: ${value}\r\n`,
      );
      socket.write(`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
      let text = "";
      const finish = (): void => {
        socket.destroy();
        const [head, body = ""] = text.split("\r\n\r\n");
        resolve({ status: Number(head.split(" ")[1]), body });
      };
      socket.setEncoding("utf8").on("data", (part) => {
        text += part;
        const length = /content-length: (\d+)/i.exec(text);
        const at = text.indexOf("\r\n\r\n");
        if (at >= 0 && (/^HTTP\/1.1 101/.test(text) || (length && text.length >= at + 4 + Number(length[1]))))
          finish();
      });
      socket.on("end", finish).on("error", reject);
    });
  const path = "/v1/database/bank/subscribe";
  const without = (name: string): Record<string, string> =>
    Object.fromEntries(Object.entries(upgrade).filter(([key]) => key !== name));

  test.each([
    ["a good one", path, upgrade, 101, ""],
    [
      "no bearer",
      path,
      { ...upgrade, authorization: "Basic x" },
      400,
      "Authorization is invalid: malformed token",
    ],
    ["a token that is none", path, { ...upgrade, authorization: "Bearer x.y.z" }, 401, ""],
    ["an empty token", `${path}?token=`, upgrade, 401, ""],
    [
      "a bad name",
      "/v1/database/Bank_1/subscribe",
      upgrade,
      400,
      "Invalid URL: invalid characters in database name",
    ],
    ["a bad parameter", `${path}?compression=gzip`, upgrade, 400, ""],
    ["no upgrade", path, {}, 426, "This service requires use of the websocket protocol"],
    [
      "another version",
      path,
      { ...upgrade, "sec-websocket-version": "8" },
      400,
      "`Sec-WebSocket-Version` header did not include '13'",
    ],
    ["no key", path, without("sec-websocket-key"), 400, "`Sec-WebSocket-Key` header missing"],
    [
      "connection id zero",
      `${path}?connection_id=${"0".repeat(32)}`,
      upgrade,
      400,
      "Invalid connection ID: the all-zeros ConnectionId is reserved.",
    ],
    ["an unknown name", "/v1/database/missing/subscribe", upgrade, 404, "`missing` not found"],
    [
      "no protocol in common",
      path,
      { ...upgrade, "sec-websocket-protocol": "graphql" },
      400,
      "no valid protocol selected",
    ],
    ["no protocol", path, without("sec-websocket-protocol"), 400, "no valid protocol selected"],
  ])("%s", async (_, where, headers, status, body) => {
    const answer = await request(where, headers);
    expect(answer.status, answer.body).toBe(status);
    if (body) expect(answer.body).toBe(body);
  });

  test.each([
    ["another signature", (t: string) => t.slice(0, -6) + (t.endsWith("AAAAAA") ? "BBBBBB" : "AAAAAA")],
    [
      "another payload",
      (t: string) =>
        t
          .split(".")
          .map((part, i) =>
            i === 1 ? Buffer.from('{"iss":"localhost","sub":"x","iat":1}').toString("base64url") : part,
          )
          .join("."),
    ],
    [
      "no algorithm",
      () =>
        `${Buffer.from('{"alg":"none","typ":"JWT"}').toString("base64url")}.${Buffer.from('{"iss":"localhost","sub":"x","iat":1}').toString("base64url")}.`,
    ],
    ["nothing at all", () => "a"],
  ])("a token with %s is answered 401 everywhere", async (_, forge) => {
    const token = forge(server.ownerToken());
    const headers = { authorization: `Bearer ${token}` };
    expect((await request(path, { ...upgrade, ...headers })).status).toBe(401);
    for (const [method, where] of [
      ["POST", "/v1/identity/websocket-token"],
      ["POST", "/v1/database/bank/call/seed"],
      ["POST", "/v1/database/bank/sql"],
      ["DELETE", "/v1/database/bank"],
    ]) {
      expect(
        (await server.fetch(where, { method, headers, body: method === "POST" ? "[]" : undefined })).status,
        where,
      ).toBe(401);
    }
  });

  test("the server ends frames that are not masked", async () => {
    const { hostname, port } = new URL(server.url);
    const socket = connectTcp(Number(port), hostname);
    const lines = Object.entries({ host: "x", ...upgrade }).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
    await new Promise((resolve) => socket.once("data", resolve));
    socket.on("data", () => {}).on("error", () => {});
    const ended = new Promise((resolve) => socket.once("close", resolve));
    socket.write(Buffer.from([0x82, 0x01, 0x09]));
    await ended;
  });

  test("a Close is echoed", async () => {
    const client = await RawClient.connect(server.url, "bank");
    client.socket.close(4321, "enough");
    expect(await client.closed).toEqual({ code: 4321, reason: "enough" });
    expect(client.socket.readyState).toBe(WebSocket.CLOSED);
  });
});

test("Brotli and gzip only when asked for; what is sent can be read", async () => {
  for (const compression of ["None", "Gzip", "Brotli"] as const) {
    const client = await RawClient.connect(server.url, "bank", { compression });
    await client.call("seed", seed(20_000, 1n));
    const applied = await client.subscribe(1, "SELECT * FROM accounts");
    expect(applied.type === "SubscribeApplied" && applied.tables[0].rows.length).toBe(20_000);
    const allowed = { None: [0], Gzip: [0, 2], Brotli: [0, 1] }[compression];
    expect(client.tags.filter((tag) => !allowed.includes(tag))).toEqual([]);
    await client.close();
  }
});

test("compression as asked, when the server is configured to", async () => {
  const compressing = await Server.start('[websocket]\ncompression = "as-asked"\n');
  try {
    await compressing.publish("bank", wasm("transfer"));
    for (const [compression, tag] of [
      ["Gzip", 2],
      ["Brotli", 1],
    ] as const) {
      const client = await RawClient.connect(compressing.url, "bank", { compression });
      await client.call("seed", seed(20_000, 1n));
      const applied = await client.subscribe(1, "SELECT * FROM accounts");
      expect(applied.type === "SubscribeApplied" && applied.tables[0].rows.length).toBe(20_000);
      expect(client.tags).toContain(tag);
      await client.close();
    }
  } finally {
    await compressing.stop();
  }
});
