// job-queue and job-lease (section 17): a filled queue is emptied by workers, and the time that takes is what counts.

import type { Config } from "../../config";
import type {
  Generator,
  Operation,
  Outcome,
  SystemUnderTest,
  Verdict,
  Workload,
  WorkloadRun,
} from "../workload";

const queueJobs = 2_000;
const leaseJobs = 20_000;
const queueConcurrencies = [1, 2, 4, 8, 16];
const leaseConcurrencies = [1, 8];
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

  /** Jobs that somebody has. */
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
export class QueueGenerator implements Generator {
  readonly #fetched: Job[] = [];

  constructor(
    private readonly queue: Queue,
    private readonly worker: number,
  ) {}

  next(): Operation | undefined {
    const job = this.#fetched.shift();
    if (job) return { kind: "ack", args: { id: job.id, lease: job.lease } };
    if (this.queue.isEmpty) return undefined;
    return { kind: "fetch", args: { worker: this.worker, lease_ms: leaseMs } };
  }

  ended(operation: Operation, outcome: Outcome | undefined): void {
    if (!outcome || outcome.miss) return;
    if (operation.kind === "ack") {
      this.queue.acknowledge(Number(operation.args["id"]));
    } else {
      const job = outcome.found as Job;
      this.queue.take(Number(job.id));
      this.#fetched.push(job);
    }
  }
}

/** Takes batches of jobs until there are none. */
export class LeaseGenerator implements Generator {
  #isDone = false;

  constructor(
    private readonly queue: Queue,
    private readonly worker: number,
  ) {}

  next(): Operation | undefined {
    if (this.#isDone) return undefined;
    return { kind: "lease", args: { worker: this.worker, max: jobsPerLease, lease_ms: leaseMs } };
  }

  ended(_operation: Operation, outcome: Outcome | undefined): void {
    if (!outcome) return;
    if (outcome.miss) this.#isDone = true;
    else for (const id of outcome.found as (number | bigint)[]) this.queue.take(Number(id));
  }
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
  settings: (config) => (config.given?.has("pgIsolation") ? {} : { pgIsolation: "read-committed" }),
  runs: (config) => {
    const given = config.given?.has("concurrency") ? [config.concurrency] : undefined;
    return (config.concurrencyList ?? given ?? shape.concurrencies).map((concurrency) => ({
      label: `with ${concurrency} workers`,
      create: () => createRun(config, shape, concurrency),
    }));
  },
});

export const jobQueueWorkload = workloadOf({
  name: "job-queue",
  jobs: queueJobs,
  concurrencies: queueConcurrencies,
  doneState: 2,
  generator: (queue, worker) => new QueueGenerator(queue, worker),
  finished: (queue) => queue.acknowledged.size,
});

export const jobLeaseWorkload = workloadOf({
  name: "job-lease",
  jobs: leaseJobs,
  concurrencies: leaseConcurrencies,
  doneState: 1,
  generator: (queue, worker) => new LeaseGenerator(queue, worker),
  finished: (queue) => queue.leased,
});
