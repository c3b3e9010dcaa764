// Many requests per SQLite transaction: each answered after the commit, each failing alone, and all together with the batch.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Connector } from "../src/connectors/connector";
import { status } from "../src/rpc-servers/batched_frames";
import { Batcher } from "../src/rpc-servers/batcher";
import { openSqlite, type SqliteDatabase } from "../src/rpc-servers/sqlite";
import { sqliteYcsb } from "../src/rpc-servers/ycsb/sqlite";
import { ycsbRow } from "../src/rpc-servers/ycsb/store";
import { loadConnector } from "../src/tests/find";
import { testContext } from "./support/preparation";

const row = (key: string) => ycsbRow(key, new Array<string>(10).fill(key));

describe("a batch", () => {
  let directory: string;
  let database: SqliteDatabase;
  let other: SqliteDatabase;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "lightcone-bench-batcher-"));
    const file = join(directory, "data.sqlite");
    database = openSqlite({ SQLITE_FILE: file, SQLITE_DURABILITY: "full" });
    sqliteYcsb(database);
    other = new Database(file);
  });
  afterEach(() => {
    database.close();
    other.close();
    rmSync(directory, { recursive: true, force: true });
  });

  /** As another connection sees it: what is committed. */
  const committed = () =>
    other.prepare("SELECT ycsb_key FROM usertable ORDER BY ycsb_key").pluck().all() as string[];

  it("is one transaction, and answers after its commit", async () => {
    const store = sqliteYcsb(database);
    const batcher = new Batcher(database, 10);
    const seenInside: number[] = [];
    const insert = (key: string) =>
      batcher
        .run(() => {
          store.insert([row(key)]);
          seenInside.push(committed().length);
        })
        .then(() => committed());
    const answers = await Promise.all(["a", "b", "c"].map(insert));
    expect(seenInside).toEqual([0, 0, 0]);
    expect(answers).toEqual(new Array(3).fill(["a", "b", "c"]));
  });

  it("takes no more than its size, in the order of arrival", async () => {
    const batcher = new Batcher(database, 2);
    const store = sqliteYcsb(database);
    const counts = await Promise.all(
      ["a", "b", "c", "d", "e"].map((key) =>
        batcher.run(() => store.insert([row(key)])).then(() => committed().length),
      ),
    );
    expect(counts).toEqual([2, 2, 4, 4, 5]);
  });

  it("keeps the others when one request fails", async () => {
    const batcher = new Batcher(database, 10);
    const store = sqliteYcsb(database);
    const results = await Promise.allSettled([
      batcher.run(() => store.insert([row("a")])),
      batcher.run(() => store.insert([row("a")])),
      // Several rows are one request: none of them stays.
      batcher.run(() => store.insert([row("x"), row("y"), row("a")])),
      batcher.run(async () => {
        store.insert([row("a")]);
      }),
      batcher.run(() => store.insert([row("b")])),
    ]);
    expect(results.map((result) => result.status)).toEqual([
      ...["fulfilled", "rejected", "rejected", "rejected", "fulfilled"],
    ]);
    expect(committed()).toEqual(["a", "b"]);
  });

  it("fails as a whole when SQLite has rolled it back", async () => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const batcher = new Batcher(database, 10);
    const store = sqliteYcsb(database);
    const statuses: number[] = [];
    database.prepare("INSERT INTO accounts VALUES (1, 10), (2, 10)").run();
    const answer = (code: number) => statuses.push(code);
    batcher.add({ from: 1, to: 2, amount: 1, answer });
    const results = await Promise.allSettled([
      batcher.run(() => store.insert([row("a")])),
      batcher.run(() => database.exec("ROLLBACK")),
      batcher.run(() => store.insert([row("b")])),
    ]);
    expect(results.map((result) => result.status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(statuses).toEqual([status.internal]);
    expect(committed()).toEqual([]);
    expect(other.prepare("SELECT balance FROM accounts WHERE id = 1").pluck().get()).toBe(10);
    expect(logged).toHaveBeenCalledOnce();
    // And the next one works.
    await batcher.run(() => store.insert([row("c")]));
    expect(committed()).toEqual(["c"]);
    logged.mockRestore();
  });
});

describe("one WebSocket", () => {
  it("carries transfers and calls side by side, and errors of single calls", async () => {
    const context = { ...testContext({ sqliteDurability: "full" }), test: "test-1" };
    const definition = await loadConnector("sqlite_batched_rpc");
    const prepared = await definition.prepare(context);
    const root = definition.create(context.config, prepared);
    let worker: Connector | undefined;
    try {
      worker = await root.createWorker!({ index: 0, total: 1 });
      const call = (name: string, args = {}) => worker!.call(name, args);
      const fields = new Array<string>(10).fill("x");
      const results = await Promise.allSettled([
        call("transfer", { from_id: 1, to_id: 2, amount: 5 }),
        call("ycsb_insert", { key: "user1", fields }),
        call("ycsb_insert", { key: "user1", fields }),
        call("ycsb_read", { key: "user1" }),
        call("no_such_method"),
        call("transfer", { from_id: 1, to_id: 4000, amount: 5 }),
        call("ycsb_read", { key: "user2" }),
      ]);
      const told = results.map((result) =>
        result.status === "fulfilled" ? result.value : (result.reason as Error).message,
      );
      expect(told).toEqual([
        { applied: true },
        null,
        expect.stringContaining("UNIQUE constraint failed"),
        expect.objectContaining({ ycsb_key: "user1", field9: "x" }),
        "sqlite_batched_rpc: unknown method: no_such_method",
        `sqlite_batched_rpc: status ${status.missing}`,
        null,
      ]);
      expect((await root.getAccount!(2))!.balance).toBe(1005n);
    } finally {
      await worker?.close();
      await prepared.stop();
      context.end();
    }
  });
});
