// The job queue: its generators, its stores, and short runs that must not lose or repeat a job.

import { describe, expect, it } from "vitest";
import { loadConnector } from "../src/tests/find";
import { jobOps } from "../src/workloads/jobs/ops";
import { jobLeaseWorkload, jobQueueWorkload } from "../src/workloads/jobs/workload";
import type { Operation, Outcome, SystemUnderTest } from "../src/workloads/workload";
import { testContext } from "./support/preparation";

const config = testContext().config;
const runOf = (workload: typeof jobQueueWorkload, jobs: number) =>
  workload.runs({ ...config, jobs })[0]!.create();

/** A queue that behaves as `faults` says. */
function mockQueue(jobs: number, faults: { handsOutTwice?: boolean } = {}) {
  let next = 1;
  return async (kind: string): Promise<Outcome> => {
    if (kind === "counts") return { ok: true, found: [0, 0, jobs, 0] };
    if (kind === "repeated") return { ok: true, found: 0 };
    if (kind !== "fetch") return { ok: true };
    if (next > jobs) return { ok: true, miss: true };
    const id = next;
    if (!faults.handsOutTwice || next !== 1) next++;
    if (faults.handsOutTwice) faults.handsOutTwice = false;
    return { ok: true, found: { id, lease: 1 } };
  };
}

describe("the workers of job-queue", () => {
  it("fetch and acknowledge in turns, until every job is done", async () => {
    const run = runOf(jobQueueWorkload, 2);
    const queue = mockQueue(2);
    const workers = [run.generator(0, 2), run.generator(1, 2)];
    const kinds: string[] = [];
    for (const worker of [0, 1, 0, 1, 0, 1]) {
      const operation = workers[worker]!.next() as Operation | undefined;
      if (!operation) continue;
      kinds.push(`${worker} ${operation.kind}`);
      workers[worker]!.ended?.(operation, await queue(operation.kind));
    }
    expect(kinds).toEqual(["0 fetch", "1 fetch", "0 ack", "1 ack"]);
    const verdict = await run.verify({ run: (kind) => queue(kind) } as SystemUnderTest, undefined as never);
    expect(verdict).toEqual({ ok: true, message: "2 jobs, each taken once" });
  });

  it("notice a job that two of them got", async () => {
    const run = runOf(jobQueueWorkload, 2);
    const queue = mockQueue(2, { handsOutTwice: true });
    for (const worker of [run.generator(0, 2), run.generator(1, 2)]) {
      const operation = worker.next() as Operation;
      worker.ended?.(operation, await queue(operation.kind));
    }
    const verdict = await run.verify({ run: (kind) => queue(kind) } as SystemUnderTest, undefined as never);
    expect(verdict).toMatchObject({
      ok: false,
      message: expect.stringContaining("job 1 was handed out twice"),
    });
  });
});

describe("the settings of the queues", () => {
  it("are those of the published runs", () => {
    expect(jobQueueWorkload.runs(config).map(({ label }) => label)).toEqual(
      [1, 2, 4, 8, 16].map((count) => `with ${count} workers`),
    );
    expect(jobLeaseWorkload.runs(config).map(({ label }) => label)).toEqual([
      "with 1 workers",
      "with 8 workers",
    ]);
    expect(runOf(jobQueueWorkload, 2_000).parameters).toEqual({ jobs: 2_000 });
    expect(jobQueueWorkload.settings?.(config)).toEqual({ pgIsolation: "read-committed" });
  });
});

const systems = ["postgres_rpc", "postgres_direct", "sqlite_rpc", "sqlite_batched_rpc"];

describe.each(systems)("%s", (key) => {
  it("hands out every job once, under a lease", async () => {
    const differences = { sqliteDurability: "full", pgIsolation: "read-committed" } as const;
    const context = { ...testContext(differences), test: "job-queue" };
    const definition = await loadConnector(key);
    const prepared = await definition.prepare(context);
    const connector = definition.create(context.config, prepared);
    const run = (kind: string, args: Record<string, unknown> = {}) => jobOps[kind]!(connector, args);
    try {
      await connector.open(1);
      await run("seed", { n: 30 });
      const first = (await run("fetch", { worker: 1, lease_ms: 60_000 })).found as {
        id: number;
        lease: number;
      };
      expect(first).toMatchObject({ id: 1, lease: 1, kind: "SummarizeText" });
      await expect(run("ack", { id: 1, lease: 2 })).rejects.toThrow("stale_lease");
      await run("ack", { id: 1, lease: 1 });
      await expect(run("ack", { id: 1, lease: 1 })).rejects.toThrow("stale_lease");

      const batches = await Promise.all(
        [1, 2, 3, 4].map((worker) => run("lease", { worker, max: 5, lease_ms: 60_000 })),
      );
      const ids = batches.flatMap(({ found }) => found as number[]);
      expect(new Set(ids).size).toBe(20);
      expect((await run("counts")).found).toEqual([9, 20, 1, 0]);
      expect((await run("repeated")).found).toBe(9);

      if (key !== "postgres_direct") {
        expect(await connector.call("job_expire")).toBe(0);
        await run("lease", { worker: 9, max: 9, lease_ms: 0 });
        await new Promise((done) => setTimeout(done, 10));
        expect(await connector.call("job_expire")).toBe(9);
        const again = (await run("fetch", { worker: 1, lease_ms: 60_000 })).found as { lease: number };
        expect(again.lease).toBe(2);
      }
      await connector.close();
    } finally {
      await prepared.stop();
      context.end();
    }
  });
});
