// The tests other than test-1 on Convex: the functions of `convex-app` through its HTTP API.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Connector } from "../src/connectors/connector";
import { NotRunning } from "../src/connectors/connector";
import { definition } from "../src/connectors/convex";
import { contentRpcOps } from "../src/workloads/content/ops";
import { contentOf, runTest } from "../src/workloads/content/workload";
import { jobOps } from "../src/workloads/jobs/ops";
import type { Operation, RunOperation } from "../src/workloads/workload";
import { ycsbOps } from "../src/workloads/ycsb/ops";
import { fieldsOf } from "../src/workloads/ycsb/workload";
import { type ConvexBackend, startConvexBackend } from "./support/convex_backend";
import { testContext } from "./support/preparation";
import { benchInTest } from "./support/workload_bench";

let backend: ConvexBackend;
beforeEach(async () => {
  backend = await startConvexBackend();
});
afterEach(() => backend.close());

async function connect(test: string): Promise<Connector> {
  const context = testContext({ convexUrl: backend.url });
  context.end();
  const prepared = await definition.prepare({ ...context, test });
  return definition.create(context.config, prepared);
}

const runner =
  (ops: Record<string, RunOperation>, connector: Connector) =>
  (kind: string, args: Record<string, unknown> = {}) =>
    ops[kind]!(connector, args);

const fieldsFrom = (prefix: string) => Array.from({ length: 10 }, (_, field) => `${prefix}${field}`);

describe("YCSB on convex", () => {
  it("reads, inserts, updates, scans, and counts page by page", async () => {
    const connector = await connect("ycsb-a");
    const run = runner(ycsbOps, connector);
    await run("clear");
    const rows = ["user30", "user1", "user2"].map((name) => ({ key: name, fields: fieldsFrom(name) }));
    await run("insert_many", { rows });
    await run("insert", { key: "user25", fields: fieldsFrom("inserted") });
    await expect(run("insert", { key: "user25", fields: fieldsFrom("again") })).rejects.toThrow(
      "there already",
    );
    expect(fieldsOf((await run("read", { key: "user25" })).found)).toEqual(fieldsFrom("inserted"));
    expect(await run("read", { key: "user9" })).toMatchObject({ miss: true });
    expect(await run("update", { key: "user25", field: 3, value: "new" })).toMatchObject({ miss: false });
    expect(await run("update", { key: "user9", field: 3, value: "new" })).toMatchObject({ miss: true });
    const before = await run("rmw", { key: "user25", field: 9, value: "newer" });
    expect(fieldsOf(before.found)[9]).toBe("inserted9");
    const after = fieldsOf((await run("read", { key: "user25" })).found);
    expect([after[2], after[3], after[9]]).toEqual(["inserted2", "new", "newer"]);
    const scanned = (await connector.call("ycsb_scan", { key: "user2", count: 2 })) as { ycsb_key: string }[];
    expect(scanned.map((row) => row.ycsb_key)).toEqual(["user2", "user25"]);
    await expect(run("update", { key: "user1", field: 10, value: "x" })).rejects.toThrow("invalid field");

    const more = Array.from({ length: 4_100 }, (_, n) => ({ key: `more${n}`, fields: fieldsFrom("m") }));
    await run("insert_many", { rows: more });
    expect((await run("count")).found).toBe(4_104);
    await run("clear");
    expect((await run("count")).found).toBe(0);
  });

  it("runs by the command and is verified", async () => {
    const { code, files, said } = await benchInTest(
      `ycsb-a --connectors convex --convex-url ${backend.url} --records 20 --ops 60 --samples 1 --concurrency 2`,
    );
    expect(code, said.join("\n")).toBe(0);
    const [sample] = files[0]!.results[0]!.res.repetitions.each;
    expect(sample).toMatchObject({ samples: 60, errors: 0, misses: 0, verify: { ran: true, ok: true } });
  });
});

describe("content-crud on convex", () => {
  it("has functions of the same names", async () => {
    const connector = await connect("content-crud");
    const run = runner(contentRpcOps, connector);
    const perform = ({ kind, args }: Operation) => run(kind, args);
    await run("clear");
    expect(await runTest(perform, 1, true)).toBe(true);
    const { found: id } = await run("create", { content: contentOf(2, true) });
    expect(await connector.call("content_get", { id })).toMatchObject({ id, data: { run_id: 2 } });
    await run("clear");
    await expect(run("read", { id, expected: contentOf(2, true) })).rejects.toThrow("read null instead of");
    await expect(run("delete", { id })).rejects.toThrow("to delete");
    expect(await connector.call("content_get", { id: "no id at all" })).toBeNull();
  });
});

describe("the job queue on convex", () => {
  it("hands out every job once, under a lease", async () => {
    const connector = await connect("job-queue");
    const run = runner(jobOps, connector);
    await run("seed", { n: 4_010 });
    await run("seed", { n: 30 });
    const first = (await run("fetch", { worker: 1, lease_ms: 60_000 })).found;
    expect(first).toEqual({ id: 1, lease: 1, kind: "SummarizeText", payload: '{"text":"lorem"}' });
    await expect(run("ack", { id: 1, lease: 2 })).rejects.toThrow("stale_lease");
    await run("ack", { id: 1, lease: 1 });
    await expect(run("ack", { id: 1, lease: 1 })).rejects.toThrow("stale_lease");
    const ids: number[] = [];
    for (const worker of [1, 2, 3, 4]) {
      ids.push(...((await run("lease", { worker, max: 5, lease_ms: 60_000 })).found as number[]));
    }
    expect(ids).toEqual(Array.from({ length: 20 }, (_, index) => index + 2));
    expect((await run("counts")).found).toEqual([9, 20, 1, 0]);
    expect((await run("repeated")).found).toBe(9);
    expect(await connector.call("job_expire")).toBe(0);
    await run("lease", { worker: 9, max: 9, lease_ms: -1 });
    expect(await connector.call("job_expire")).toBe(9);
    expect((await run("fetch", { worker: 1, lease_ms: 60_000 })).found).toMatchObject({ id: 22, lease: 2 });
  });
});

describe("an app of another suite", () => {
  it("is told from this one by the functions of the test", async () => {
    backend.failNext(1, "Could not find public function for 'ycsb:ycsb_read'");
    const attempt = connect("ycsb-b");
    await expect(attempt).rejects.toThrow(NotRunning);
    await expect(attempt).rejects.toThrow("not with the functions of convex-app: convex: ycsb:ycsb_read");
  });
});
