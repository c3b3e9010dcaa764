// The operations of YCSB on real systems, and a short run of a workload from the command to its file.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Connector } from "../src/connectors/connector";
import { loadConnector } from "../src/tests/find";
import type { Outcome } from "../src/workloads/workload";
import { ycsbOps } from "../src/workloads/ycsb/ops";
import { fieldsOf } from "../src/workloads/ycsb/workload";
import { type MongodbStandIn, startMongodbStandIn } from "./support/mongodb_stand_in";
import { testContext, withEnvironment } from "./support/preparation";
import { benchInTest } from "./support/workload_bench";

const systems = [
  ...["postgres_rpc", "postgres_direct", "sqlite_rpc", "sqlite_batched_rpc", "node_memory_rpc"],
  ...["mysql_direct", "mongodb_direct", "redis_direct"],
];

/** No package has MongoDB: something that speaks its protocol stands in. */
let mongodb: MongodbStandIn;
beforeAll(async () => {
  mongodb = await startMongodbStandIn();
});
afterAll(() => mongodb.close());

const fieldsFrom = (prefix: string) => Array.from({ length: 10 }, (_, field) => `${prefix}${field}`);

describe.each(systems)("%s", (key) => {
  it("reads, inserts, updates, scans", async () => {
    const context = { ...testContext({ sqliteDurability: "full" }), test: "ycsb-a" };
    const definition = await loadConnector(key);
    const urls = { MYSQL_URL: undefined, REDIS_URL: undefined, MONGODB_URL: mongodb.url };
    const prepared = await withEnvironment(urls, () => definition.prepare(context));
    const connector: Connector = definition.create(context.config, prepared);
    const run = (kind: string, args: Record<string, unknown> = {}): Promise<Outcome> =>
      ycsbOps[kind]!(worker ?? connector, args);
    let worker: Connector | undefined;
    try {
      await connector.open(1);
      worker = await connector.createWorker!({ index: 0, total: 1 });
      await run("clear");
      const rows = ["user30", "user1", "user2"].map((name) => ({ key: name, fields: fieldsFrom(name) }));
      await run("insert_many", { rows });
      await run("insert", { key: "user25", fields: fieldsFrom("inserted") });
      expect(Number((await run("count")).found)).toBe(4);
      await expect(run("insert", { key: "user25", fields: fieldsFrom("again") })).rejects.toThrow();

      const found = await run("read", { key: "user25" });
      expect(found).toMatchObject({ ok: true, miss: false });
      expect(fieldsOf(found.found)).toEqual(fieldsFrom("inserted"));
      expect(await run("read", { key: "user9" })).toMatchObject({ ok: true, miss: true });

      expect(await run("update", { key: "user25", field: 3, value: "new" })).toMatchObject({ miss: false });
      expect(await run("update", { key: "user9", field: 3, value: "new" })).toMatchObject({ miss: true });
      const before = await run("rmw", { key: "user25", field: 9, value: "newer" });
      expect(fieldsOf(before.found)[9]).toBe("inserted9");
      expect(await run("rmw", { key: "user9", field: 9, value: "newer" })).toMatchObject({ miss: true });
      const after = fieldsOf((await run("read", { key: "user25" })).found);
      expect([after[2], after[3], after[9]]).toEqual(["inserted2", "new", "newer"]);

      await expect(worker.call("ycsb_update", { key: "user1", field: 10, value: "x" })).rejects.toThrow(
        "invalid field",
      );
      if (key !== "redis_direct") {
        const scanned = (await worker.call("ycsb_scan", { key: "user2", count: 2 })) as {
          ycsb_key: string;
        }[];
        expect(scanned.map((row) => row.ycsb_key)).toEqual(["user2", "user25"]);
      }
      if (key === "redis_direct") {
        await expect(run("scan", { key: "user3", count: 9 })).rejects.toThrow("there are no scans");
      } else {
        expect(await run("scan", { key: "user3", count: 9 })).toMatchObject({ ok: true, miss: false });
        expect(await run("scan", { key: "user4", count: 9 })).toMatchObject({ ok: true, miss: true });
      }
      await run("clear");
      expect(Number((await run("count")).found)).toBe(0);
      await worker.close();
      await connector.close();
    } finally {
      await prepared.stop();
      context.end();
    }
  });
});

describe("bench ycsb-f", () => {
  it("runs, verifies and writes a file", async () => {
    const { code, said, files } = await benchInTest(
      "ycsb-f --connectors sqlite_rpc --records 50 --ops 200 --samples 2 --concurrency 4",
    );
    expect(code).toBe(0);
    expect(files).toHaveLength(1);
    expect(files[0]).toMatchObject({ test: "ycsb-f", alpha: null, concurrency: 4 });
    const { res } = files[0]!.results[0]!;
    expect(res.repetitions.each).toHaveLength(2);
    for (const sample of res.repetitions.each) {
      expect(sample).toMatchObject({ samples: 200, errors: 0, misses: 0, invalid: [] });
      expect(sample.verify).toMatchObject({ ran: true, ok: true });
      expect(sample.ops["read"]!.count + sample.ops["rmw"]!.count).toBe(200);
      expect(sample.load).toMatchObject({ rows: 50 });
      expect(sample.cpu!.server!.cpu_s).toBeGreaterThanOrEqual(0);
    }
    expect(said.filter((line) => line.startsWith("Verification passed: 50 records"))).toHaveLength(2);
  });
});

describe("databases without a server in front", () => {
  const fairnessOf = async (
    key: string,
    durability: "on" | "off",
    urls: Record<string, string | undefined>,
  ) => {
    const context = { ...testContext({ durability }), test: "ycsb-a" };
    const definition = await loadConnector(key);
    try {
      const prepared = await withEnvironment(urls, () => definition.prepare(context));
      await prepared.stop();
      return { ...prepared.fairness, said: context.said };
    } finally {
      context.end();
    }
  };

  it("have the durability of the published rows, as they report it themselves", async () => {
    const mysql = await fairnessOf("mysql_direct", "on", { MYSQL_URL: undefined });
    expect(mysql.systemClass).toBe("database-direct");
    expect(mysql.durability).toContain("innodb_flush_log_at_trx_commit=1 log_bin=ON sync_binlog=1");
    expect(mysql.durability).toContain("binlog_commit_wait_usec=2000");
    const redis = await fairnessOf("redis_direct", "on", { REDIS_URL: undefined });
    expect(redis).toMatchObject({
      systemClass: "database-direct",
      durability: "appendonly=yes appendfsync=always",
    });
    mongodb.commands.length = 0;
    const mongo = await fairnessOf("mongodb_direct", "on", { MONGODB_URL: mongodb.url });
    expect(mongo).toMatchObject({
      systemClass: "database-direct",
      durability: expect.stringContaining("w=1 j=true"),
    });
    expect(mongo.said.join()).toContain("commit interval is 100 ms; the published rows had 2 ms");
  });

  it("are of another class without durability", async () => {
    const mysql = await fairnessOf("mysql_direct", "off", { MYSQL_URL: undefined });
    expect(mysql).toMatchObject({
      systemClass: "not-durable",
      durability: expect.stringContaining("innodb_flush_log_at_trx_commit=0 log_bin=ON sync_binlog=0"),
    });
    expect(await fairnessOf("redis_direct", "off", { REDIS_URL: undefined })).toMatchObject({
      systemClass: "not-durable",
      durability: "appendonly=no",
    });
    expect(await fairnessOf("mongodb_direct", "off", { MONGODB_URL: mongodb.url })).toMatchObject({
      systemClass: "not-durable",
      durability: expect.stringContaining("not acknowledged"),
    });
  });

  it("ask MongoDB for the journal with each write", async () => {
    const context = { ...testContext(), test: "ycsb-a" };
    const definition = await loadConnector("mongodb_direct");
    try {
      const prepared = await withEnvironment({ MONGODB_URL: mongodb.url }, () => definition.prepare(context));
      const connector = definition.create(context.config, prepared);
      await connector.open(1);
      mongodb.commands.length = 0;
      await ycsbOps["insert"]!(connector, { key: "user7", fields: fieldsFrom("x") });
      await ycsbOps["update"]!(connector, { key: "user7", field: 1, value: "y" });
      await connector.close();
      const writes = mongodb.commands.filter(({ name }) => name === "insert" || name === "update");
      expect(writes.map(({ writeConcern }) => writeConcern)).toEqual([
        { w: 1, j: true },
        { w: 1, j: true },
      ]);
    } finally {
      context.end();
    }
  });

  it("end with code 3 where nothing is running, and say how to start it", async () => {
    const missing = await withEnvironment({ MONGODB_URL: undefined }, () =>
      benchInTest("ycsb-a --connectors mongodb_direct --records 5 --ops 5"),
    );
    expect(missing.code).toBe(3);
    expect(missing.said.at(-1)).toContain("not running: MONGODB_URL is not set: start it with `mongod");
    const refused = await withEnvironment({ MYSQL_URL: "mysql://bench:secret@127.0.0.1:1/bench" }, () =>
      benchInTest("ycsb-a --connectors mysql_direct --records 5 --ops 5"),
    );
    expect(refused.code).toBe(3);
    expect(refused.said.at(-1)).toContain("not running: no connection to 127.0.0.1 (MYSQL_URL)");
    expect(refused.said.join()).not.toContain("secret");
  });

  it("leaves a test out that a system cannot run", async () => {
    const attempt = benchInTest("ycsb-e --connectors redis_direct --records 5 --ops 5");
    await expect(attempt).rejects.toThrow("no chosen connector has the test ycsb-e");
  });
});
