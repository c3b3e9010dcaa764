// job-queue and job-lease (section 17): a filled queue is emptied by workers, and the time that takes is what counts.

import { type Config, unlessGiven } from "../../config";
import type { Generator, SystemUnderTest, Verdict, Workload, WorkloadRun } from "../workload";

const samples = 3;
const leaseMs = 30_000;
const jobsPerLease = 50;

interface Job {
  id: number;
  lease: number;
}

/** What the workers of one run know together. */
class Queue {
  readonly acknowledged = new Set<number>();
  readonly #held = new Set<number>();
  /** What must not happen, e.g. a job that two workers have. */
  readonly faults: string[] = [];

  constructor(readonly jobs: number) {}

  /** Jobs that workers have. */
  get leased(): number {
    return this.#held.size;
  }

  get isEmpty(): boolean {
    return this.acknowledged.size >= this.jobs;
  }

  take(id: number): void {
    if (this.#held.has(id)) this.faults.push(`job ${id} was handed out twice`);
    if (this.acknowledged.has(id)) this.faults.push(`job ${id} was handed out after it was done`);
    this.#held.add(id);
  }

  acknowledge(id: number): void {
    if (this.acknowledged.has(id)) this.faults.push(`job ${id} was acknowledged twice`);
    this.#held.delete(id);
    this.acknowledged.add(id);
  }
}

/** Fetches a job and acknowledges it, until all are done. */
function queueGenerator(queue: Queue, worker: number): Generator {
  const fetched: Job[] = [];
  return {
    next() {
      const job = fetched.shift();
      if (job) return { kind: "ack", args: { id: job.id, lease: job.lease } };
      return queue.isEmpty ? undefined : { kind: "fetch", args: { worker, lease_ms: leaseMs } };
    },
    ended(operation, outcome) {
      if (!outcome || outcome.miss) return;
      if (operation.kind === "ack") {
        queue.acknowledge(Number(operation.args["id"]));
      } else {
        const job = outcome.found as Job;
        queue.take(Number(job.id));
        fetched.push(job);
      }
    },
  };
}

/** Takes batches of jobs until there are none. */
function leaseGenerator(queue: Queue, worker: number): Generator {
  let isDone = false;
  return {
    next: () =>
      isDone ? undefined : { kind: "lease", args: { worker, max: jobsPerLease, lease_ms: leaseMs } },
    ended(_operation, outcome) {
      if (!outcome) return;
      if (outcome.miss) isDone = true;
      else for (const id of outcome.found as (number | bigint)[]) queue.take(Number(id));
    },
  };
}

async function verify({ run }: SystemUnderTest, queue: Queue, doneState: number): Promise<Verdict> {
  const fault = queue.faults[0];
  if (fault !== undefined) return { ok: false, message: `${fault} (${queue.faults.length} faults in all)` };
  const counts = ((await run("counts")).found as (number | bigint)[]).map(Number);
  if (counts[doneState] !== queue.jobs) {
    return {
      ok: false,
      message: `jobs by state are ${counts.join(", ")}; all ${queue.jobs} should have state ${doneState}`,
    };
  }
  const repeated = Number((await run("repeated")).found);
  if (repeated !== 0) return { ok: false, message: `${repeated} jobs were not taken exactly once` };
  return { ok: true, message: `${queue.jobs} jobs, each taken once` };
}

interface Shape {
  name: string;
  jobs: number;
  concurrencies: number[];
  /** The state that every job has at the end. */
  doneState: number;
  generator(queue: Queue, worker: number): Generator;
  /** Jobs that were finished, of the operations that succeeded. */
  finished(queue: Queue): number;
}

function createRun(config: Config, shape: Shape, concurrency: number): WorkloadRun {
  const queue = new Queue(config.jobs ?? shape.jobs);
  return {
    parameters: { jobs: queue.jobs },
    limit: { mode: "drain" },
    concurrency,
    load: async ({ run }) => {
      await run("seed", { n: queue.jobs });
      return undefined;
    },
    generator: (worker) => shape.generator(queue, worker + 1),
    successes: () => shape.finished(queue),
    verify: (system) => verify(system, queue, shape.doneState),
  };
}

const workloadOf = (shape: Shape): Workload => ({
  name: shape.name,
  samples,
  // The published figures are of PostgreSQL's own default; rows that are skipped are no conflicts there.
  settings: (config) => ({ pgIsolation: unlessGiven(config, "pgIsolation", "read-committed") }),
  runs: (config) => {
    const given = config.given?.has("concurrency") ? [config.concurrency] : undefined;
    return (config.concurrencyList ?? given ?? shape.concurrencies).map((concurrency) => ({
      label: `with ${concurrency} workers`,
      create: () => createRun(config, shape, concurrency),
    }));
  },
});

export const jobQueueWorkload = workloadOf({
  ...{ name: "job-queue", jobs: 2_000, concurrencies: [1, 2, 4, 8, 16], doneState: 2 },
  generator: queueGenerator,
  finished: (queue) => queue.acknowledged.size,
});

export const jobLeaseWorkload = workloadOf({
  ...{ name: "job-lease", jobs: 20_000, concurrencies: [1, 8], doneState: 1 },
  generator: leaseGenerator,
  finished: (queue) => queue.leased,
});
