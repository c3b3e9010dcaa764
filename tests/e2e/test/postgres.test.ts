// PostgreSQL's protocol as node-postgres speaks it: simple queries, and parameters in the extended protocol.

import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Server, wasm } from "../src/server";

let server: Server;
let port: number;
let client: pg.Client;

beforeAll(async () => {
  server = await Server.start('[postgres]\nlisten = "127.0.0.1:0"\n');
  const listening = /PostgreSQL's protocol on \S+:(\d+)/.exec(server.output);
  if (!listening) throw new Error(`no port for PostgreSQL's protocol:\n${server.output}`);
  port = Number(listening[1]);
  await server.publish("bank", wasm("transfer"));
  await server.cliOk("call", "bank", "seed", "5", "100");
  client = connection(server.ownerToken());
  await client.connect();
});

afterAll(async () => {
  await client?.end();
  await server?.stop();
});

function connection(password: string): pg.Client {
  return new pg.Client({ host: "127.0.0.1", port, user: "me", database: "bank", password });
}

describe("queries", () => {
  test("simple ones give rows", async () => {
    const result = await client.query("SELECT id, balance FROM accounts WHERE id = 3");
    expect(result.fields.map((field) => [field.name, field.dataTypeID])).toEqual([
      ["id", 20],
      ["balance", 20],
    ]);
    expect(result.rows).toEqual([{ id: "3", balance: "100" }]);
  });

  test("parameters are values, whatever is in them", async () => {
    const result = await client.query("SELECT * FROM accounts WHERE id > $1 AND balance = $2", [2, "100"]);
    expect(result.rowCount).toBe(2);
    await expect(client.query("SELECT * FROM accounts WHERE id = $1", ["1 OR TRUE"])).rejects.toMatchObject({
      code: "22P02",
    });
    await expect(client.query("SELECT * FROM accounts WHERE id = $1", [null])).rejects.toMatchObject({
      code: "22004",
    });
  });

  test("a named statement is prepared once", async () => {
    for (let id = 0; id < 5; id++) {
      const query = { name: "one", text: "SELECT balance FROM accounts WHERE id = $1", values: [id] };
      expect((await client.query(query)).rows).toEqual([{ balance: "100" }]);
    }
  });

  test("rows are changed, and others see it", async () => {
    const inserted = await client.query("INSERT INTO accounts VALUES ($1, $2)", [7, 70]);
    expect([inserted.command, inserted.rowCount]).toEqual(["INSERT", 1]);
    const updated = await client.query("UPDATE accounts SET balance = $1 WHERE id = $2", [71, 7]);
    expect([updated.command, updated.rowCount]).toEqual(["UPDATE", 1]);
    expect(await server.sql("bank", "SELECT * FROM accounts WHERE id = 7")).toEqual([[7, 71]]);
    const deleted = await client.query("DELETE FROM accounts WHERE id = $1", [7]);
    expect([deleted.command, deleted.rowCount]).toEqual(["DELETE", 1]);
  });

  test("errors have a state and leave the session usable", async () => {
    await expect(client.query("SELECT * FROM nothing")).rejects.toMatchObject({ code: "42P01" });
    await expect(client.query("SELECT nothing FROM accounts WHERE id = $1", [1])).rejects.toMatchObject({
      code: "42703",
    });
    expect((await client.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
  });
});

test("a stranger reads and does not write; a wrong token is refused", async () => {
  const { token } = await server.identity();
  const stranger = connection(token);
  await stranger.connect();
  expect((await stranger.query("SELECT * FROM accounts")).rowCount).toBe(5);
  await expect(stranger.query("DELETE FROM accounts")).rejects.toMatchObject({ code: "42501" });
  await stranger.end();
  await expect(connection("nonsense").connect()).rejects.toMatchObject({ code: "28P01" });
});

test("a pool works with BEGIN and COMMIT around what reads", async () => {
  const pool = new pg.Pool({
    host: "127.0.0.1",
    port,
    user: "me",
    database: "bank",
    password: server.ownerToken(),
    max: 4,
  });
  const counts = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const session = await pool.connect();
      await session.query("BEGIN");
      const { rowCount } = await session.query("SELECT * FROM accounts");
      await session.query("COMMIT");
      session.release();
      return rowCount;
    }),
  );
  expect(counts).toEqual(Array.from({ length: 20 }, () => 5));
  await pool.end();
});
