// What a server finds when it starts again: connections that never said goodbye, a torn log, a damaged one.

import { closeSync, ftruncateSync, openSync, readdirSync, readFileSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RawClient } from "../src/raw-client";
import { Server, wasm } from "../src/server";
import { Writer } from "../src/wire";

let server: Server;
beforeEach(async () => {
  server = await Server.start();
});
afterEach(() => server?.stop());

const transfer = (from: number, to: number, amount: bigint): Buffer =>
  new Writer().u32(from).u32(to).i64(amount).done();

/** The log of the only database: its last segment with content, and where the content ends. */
function logTail(): { path: string; end: number } {
  const replicas = server.home.path("data/replicas");
  const [replica] = readdirSync(replicas);
  const log = join(replicas, replica, "log");
  const segments = readdirSync(log)
    .filter((name) => /^\d+\.segment$/.test(name))
    .sort();
  for (const name of segments.reverse()) {
    const content = readFileSync(join(log, name));
    let end = content.length;
    while (end > 0 && content[end - 1] === 0) end--;
    if (end > 0) return { path: join(log, name), end };
  }
  throw new Error(`no log below ${log}`);
}

test("after a kill every connection gets its disconnect before any client is served", async () => {
  await server.publish("all", wasm("coverage"));
  const clients = await Promise.all(Array.from({ length: 5 }, () => RawClient.connect(server.url, "all")));
  // Answered and therefore durable.
  for (const [i, client] of clients.entries())
    await client.call("set_mark", new Writer().u32(i).string("x").done());
  await server.kill();
  await server.launch();
  const visitor = await RawClient.connect(server.url, "all");
  const online = (await visitor.query("SELECT * FROM online")).tables![0].rows;
  expect(online).toHaveLength(1);
  const events = (await server.sql("all", "SELECT * FROM lifecycle")).map((row) => JSON.stringify(row));
  for (const { connectionId } of clients) {
    const id = BigInt(`0x${connectionId}`);
    const rows = await server.sql("all", `SELECT * FROM st_client WHERE connection_id = ${id}`);
    expect(rows).toHaveLength(0);
  }
  const count = (event: string): number => events.filter((text) => text.includes(`"${event}"`)).length;
  // The visitor is connected; so may be the request that asked.
  expect(count("connected") - count("disconnected")).toBeGreaterThanOrEqual(1);
  expect(count("connected") - count("disconnected")).toBeLessThanOrEqual(2);
  expect((await visitor.query("SELECT * FROM marks")).tables![0].rows).toHaveLength(5);
  await visitor.close();
});

test("a torn end of the log is cut; everything before it is there", async () => {
  await server.publish("bank", wasm("transfer"));
  const client = await RawClient.connect(server.url, "bank");
  await client.call("seed", new Writer().u32(2).i64(100n).done());
  await client.call("transfer", transfer(0, 1, 1n));
  await client.call("transfer", transfer(0, 1, 2n));
  await server.kill();
  const { path, end } = logTail();
  const file = openSync(path, "r+");
  ftruncateSync(file, end - 3);
  closeSync(file);
  await server.launch();
  // The last record was the second transfer.
  expect((await server.sql("bank", "SELECT * FROM accounts")).sort()).toEqual([
    [0, 99],
    [1, 101],
  ]);
  const again = await RawClient.connect(server.url, "bank");
  expect((await again.call("transfer", transfer(0, 1, 5n))).kind).toBe("Ok");
  await server.kill();
  await server.launch();
  expect((await server.sql("bank", "SELECT * FROM accounts")).sort()).toEqual([
    [0, 94],
    [1, 106],
  ]);
});

test("damage elsewhere in the log is refused with file and offset, and other databases work", async () => {
  await server.publish("bank", wasm("transfer"));
  const client = await RawClient.connect(server.url, "bank");
  await client.call("seed", new Writer().u32(50).i64(100n).done());
  for (let i = 0; i < 20; i++) await client.call("transfer", transfer(i, i + 1, 1n));
  await server.kill();
  const { path, end } = logTail();
  const file = openSync(path, "r+");
  const byte = Buffer.alloc(1);
  const position = Math.floor(end / 2);
  readSync(file, byte, 0, 1, position);
  writeSync(file, Buffer.from([byte[0] ^ 0x40]), 0, 1, position);
  closeSync(file);

  await server.launch();
  const refused = await server.cli("sql", "bank", "SELECT * FROM accounts");
  expect(refused.code).toBe(1);
  await server.publish("other", wasm("transfer"));
  await server.cliOk("call", "other", "seed", "3", "1");
  // Who runs the server learns where the damage is, and what to do.
  const told = refused.stderr + server.output;
  expect(told).toContain(path.slice(path.lastIndexOf("/") + 1));
  expect(told).toMatch(/offset|byte/);
  expect(told).toMatch(/\[LC05\d\d\]/);
});

test("in-memory databases need no log", async () => {
  await server.stop();
  server = new Server();
  await server.launch("--in-memory");
  await server.home.ok("login", "--server-issued-login", server.url);
  await server.publish("bank", wasm("transfer"));
  await server.cliOk("call", "bank", "seed", "3", "1");
  expect(await server.sql("bank", "SELECT * FROM accounts")).toHaveLength(3);
});
