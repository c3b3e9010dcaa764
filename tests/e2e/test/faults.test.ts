// Reducers that break, clients that do not read: their caller gets an error, no other client notices.

import { connect as connectTcp, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RawClient } from "../src/raw-client";
import { Server, sleep, until, wasm } from "../src/server";
import { message, Writer } from "../src/wire";

let server: Server;
let bystander: RawClient;

beforeAll(async () => {
  server = await Server.start(`
[limits]
call-ms-max = 1500
memory-bytes-max = 134217728
outgoing-queue-length = 64
`);
  await server.publish("all", wasm("coverage"));
  await server.publish("bank", wasm("transfer"));
  bystander = await RawClient.connect(server.url, "bank");
  await bystander.call("seed", new Writer().u32(100).i64(1_000_000n).done());
});
afterAll(() => server?.stop());

const text = (value: string): Buffer => new Writer().string(value).done();
const u32 = (value: number): Buffer => new Writer().u32(value).done();
const mark = (id: number, value: string): Buffer => new Writer().u32(id).string(value).done();
const FATAL = { kind: "InternalError", error: "The instance encountered a fatal error." };

/** Runs transfers on the other database until `work` is done; returns the longest time that one took. */
async function bystanderDuring<T>(work: Promise<T>): Promise<{ result: T; slowest: number; calls: number }> {
  let done = false;
  const finished = work.finally(() => (done = true));
  let [slowest, calls] = [0, 0];
  do {
    const start = performance.now();
    const outcome = await bystander.call("transfer", new Writer().u32(1).u32(2).i64(1n).done());
    expect(outcome.kind).toBe("Ok");
    slowest = Math.max(slowest, performance.now() - start);
    calls += 1;
    await sleep(1);
  } while (!done);
  return { result: await finished, slowest, calls };
}

describe("a reducer that", () => {
  test.each<[string, string, Buffer]>([
    ["panics", "panic", text("on purpose")],
    ["breaks a unique constraint", "break_unique", Buffer.alloc(0)],
    ["traps", "trap", Buffer.alloc(0)],
    ["divides by zero", "divide", u32(0)],
    ["reads past its memory", "read_past_end", Buffer.alloc(0)],
    ["loops for ever", "loop_for_ever", Buffer.alloc(0)],
    ["allocates without end", "allocate_without_end", Buffer.alloc(0)],
    ["overflows its stack", "overflow_stack", Buffer.alloc(0)],
    ["inserts without end", "insert_without_end", Buffer.alloc(0)],
  ])("%s", async (_, reducer, args) => {
    const client = await RawClient.connect(server.url, "all");
    const watcher = await RawClient.connect(server.url, "all");
    await watcher.subscribe(1, "SELECT * FROM marks");
    const { result, calls } = await bystanderDuring(client.call(reducer, args));
    expect(result).toMatchObject({ kind: "InternalError" });
    if (reducer !== "loop_for_ever" && reducer !== "insert_without_end") expect(result).toEqual(FATAL);
    expect(calls).toBeGreaterThan(0);

    // The next call works, and nothing of the broken one is left.
    expect((await client.call("set_mark", mark(3, reducer))).kind).toBe("Ok");
    const rows = (await client.query("SELECT * FROM marks")).tables![0].rows;
    expect(rows.map((row) => row.readUInt32LE(0))).toEqual([3]);
    // Others saw the good call only.
    const update = await watcher.expect("TransactionUpdate");
    expect(update.querySets[0].tables[0].inserts.map((row) => row.toString("hex"))).toEqual([
      mark(3, reducer).toString("hex"),
    ]);
    await client.close();
    await watcher.close();
  });

  test("fails with an error of its own is rolled back", async () => {
    const client = await RawClient.connect(server.url, "all");
    expect(await client.call("fail", text("no"))).toEqual({ kind: "Err", error: "no" });
    const rows = (await client.query("SELECT * FROM marks")).tables![0].rows;
    expect(rows.filter((row) => row.readUInt32LE(0) >= 1_000_000)).toEqual([]);
    await client.close();
  });

  test("leaks iterators or memory does no harm to later calls", async () => {
    const client = await RawClient.connect(server.url, "all");
    for (let i = 0; i < 20; i++) await client.call("leak_iterators", u32(50));
    let failed = 0;
    for (let i = 0; i < 12; i++) failed += (await client.call("leak", u32(16))).kind === "Ok" ? 0 : 1;
    // The memory limit ends the instance once; the new one starts afresh.
    expect(failed).toBeGreaterThan(0);
    expect(failed).toBeLessThan(12);
    expect((await client.call("set_mark", mark(4, "after leaks"))).kind).toBe("Ok");
    await client.close();
  });

  test("leaves its reason in the module log", async () => {
    const client = await RawClient.connect(server.url, "all");
    await client.call("panic", text("look for this"));
    await client.close();
    const logs = await server.cliOk("logs", "all", "-n", "20");
    expect(logs).toContain("look for this");
  });
});

test("calls over HTTP report the fault and the next one works", async () => {
  const call = (reducer: string, args: unknown[]) =>
    server.fetch(`/v1/database/all/call/${reducer}`, {
      method: "POST",
      body: JSON.stringify(args),
      headers: { "content-type": "application/json", authorization: `Bearer ${server.ownerToken()}` },
    });
  const failed = await call("fail", ["refused"]);
  expect([failed.status, await failed.text()]).toEqual([530, "refused"]);
  const broken = await call("panic", ["x"]);
  expect(broken.status).toBe(530);
  expect(await broken.text()).toContain("fatal error");
  expect((await call("nothing", [])).status).toBe(404);
  expect((await call("set_mark", ["one", 2])).status).toBe(400);
  expect((await call("set_mark", [5, "ok"])).status).toBe(200);
});

/** A subscriber that stops reading after its handshake. */
async function deafSubscriber(
  database: string,
  query: string,
): Promise<{ socket: Socket; closed: () => boolean }> {
  const { hostname, port } = new URL(server.url);
  const socket = connectTcp(Number(port), hostname);
  let closed = false;
  socket.on("close", () => (closed = true)).on("error", () => {});
  socket.write(
    `GET /v1/database/${database}/subscribe?compression=None HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
      "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: v3.bsatn.spacetimedb\r\n\r\n",
  );
  await new Promise((resolve) => socket.once("data", resolve));
  const payload = message.subscribe(1, 1, [query]);
  const mask = Buffer.from([1, 2, 3, 4]);
  socket.write(
    Buffer.concat([
      Buffer.from([0x82, 0x80 | payload.length]),
      mask,
      payload.map((byte, i) => byte ^ mask[i % 4]),
    ]),
  );
  await sleep(200);
  socket.pause();
  return { socket, closed: () => closed };
}

test("a client that does not read is cut, and no other client waits for it", async () => {
  const writer = await RawClient.connect(server.url, "all");
  const reader = await RawClient.connect(server.url, "all");
  await reader.subscribe(1, "SELECT * FROM marks WHERE id = 9");
  const deaf = await deafSubscriber("all", "SELECT * FROM marks");
  const connected = async () => (await server.sql("all", "SELECT * FROM online")).length;
  const before = await connected();
  let slowest = 0;
  let isCut = false;
  // 200 kB each: the buffers of the kernel are full after some tens, the queue of 64 messages soon after.
  for (let i = 0; i < 400 && !isCut; i++) {
    const start = performance.now();
    expect((await writer.call("set_mark", mark(9, `${i} `.padEnd(200_000, "x")))).kind).toBe("Ok");
    slowest = Math.max(slowest, performance.now() - start);
    await reader.expect("TransactionUpdate");
    if (i % 20 === 19) isCut = (await connected()) < before;
  }
  await until("the deaf client is cut", async () => (await connected()) < before);
  expect(slowest).toBeLessThan(5_000);
  // Once it reads again it finds the end of the connection, without a Close.
  deaf.socket.resume();
  await until("its socket ends", deaf.closed);
  expect((await writer.call("set_mark", mark(9, "done"))).kind).toBe("Ok");
  await reader.expect("TransactionUpdate");
  await writer.close();
  await reader.close();
});

test("what is no module is refused with a reason", async () => {
  for (const body of [Buffer.alloc(0), Buffer.from("not a module"), Buffer.from("0061736d01000000", "hex")]) {
    const response = await server.fetch("/v1/database/rubbish", {
      method: "PUT",
      body,
      headers: { authorization: `Bearer ${server.ownerToken()}` },
    });
    const reason = await response.text();
    expect(response.status, reason).toBeGreaterThanOrEqual(400);
    expect(response.status, reason).toBeLessThan(600);
    expect(reason.length).toBeGreaterThan(10);
  }
  expect((await server.fetch("/v1/database/rubbish")).status).toBe(404);
  expect(server.isRunning).toBe(true);
});

test("the other database never noticed", async () => {
  const rows = (await bystander.query("SELECT * FROM accounts")).tables![0].rows;
  expect(rows.reduce((sum, row) => sum + row.readBigInt64LE(4), 0n)).toBe(100_000_000n);
  expect(bystander.socket.readyState).toBe(bystander.socket.OPEN);
});
