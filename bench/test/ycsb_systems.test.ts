// The operations of YCSB on real systems, and a short run of a workload from the command to its file.

import { describe, expect, it } from "vitest";
import type { Connector } from "../src/connectors/connector";
import { loadConnector } from "../src/connectors/registry";
import type { Outcome, RunOperation } from "../src/workloads/workload";
import { ycsbPostgresDirectOps } from "../src/workloads/ycsb/postgres_direct_ops";
import { ycsbRpcOps } from "../src/workloads/ycsb/rpc_ops";
import { fieldsOf } from "../src/workloads/ycsb/workload";
import { testContext } from "./support/preparation";
import { benchInTest } from "./support/workload_bench";

const systems: [key: string, ops: Record<string, RunOperation>][] = [
  ["postgres_rpc", ycsbRpcOps],
  ["postgres_direct", ycsbPostgresDirectOps],
  ["sqlite_rpc", ycsbRpcOps],
  ["sqlite_batched_rpc", ycsbRpcOps],
  ["node_memory_rpc", ycsbRpcOps],
];

const fieldsFrom = (prefix: string) => Array.from({ length: 10 }, (_, field) => `${prefix}${field}`);

describe.each(systems)("%s", (key, ops) => {
  it("reads, inserts, updates, scans", async () => {
    const context = { ...testContext({ sqliteDurability: "full" }), test: "ycsb-a" };
    const definition = await loadConnector(key);
    const prepared = await definition.prepare(context);
    const connector: Connector = definition.create(context.config, prepared);
    const run = (kind: string, args: Record<string, unknown> = {}): Promise<Outcome> =>
      ops[kind]!(worker ?? connector, args);
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

      if (key !== "postgres_direct") {
        const scanned = (await worker.call("ycsb_scan", { key: "user2", count: 2 })) as {
          ycsb_key: string;
        }[];
        expect(scanned.map((row) => row.ycsb_key)).toEqual(["user2", "user25"]);
        await expect(worker.call("ycsb_update", { key: "user1", field: 10, value: "x" })).rejects.toThrow(
          "invalid field",
        );
      }
      expect(await run("scan", { key: "user3", count: 9 })).toMatchObject({ ok: true, miss: false });
      expect(await run("scan", { key: "user4", count: 9 })).toMatchObject({ ok: true, miss: true });
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
