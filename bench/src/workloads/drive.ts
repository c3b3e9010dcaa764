// The loops over the generators of a run (section 14.1): closed, or open with a rate.

import type { Clock } from "../core/clock";
import type { Measurement } from "./measurement";
import type { Generator, Limit } from "./workload";

export interface DriveOptions {
  clock: Clock;
  measurement: Measurement;
  limit: Limit;
  /** One per worker. */
  generators: Generator[];
  /** Operations that each worker has in flight. */
  inFlight: number;
  /** Open loop: operations per second, over all workers. */
  rate?: number | undefined;
}

/** Hands out the numbers of operations until there are enough. */
class Counter {
  #taken = 0;
  constructor(private readonly most: number) {}
  take(): boolean {
    if (this.#taken >= this.most) return false;
    this.#taken++;
    return true;
  }
}

/** Runs until the limit; every worker begins in the same turn of the event loop. */
export async function drive(options: DriveOptions): Promise<void> {
  const { limit, generators, inFlight } = options;
  const counter = new Counter(limit.mode === "count" ? limit.operations : Number.POSITIVE_INFINITY);
  const chains = generators.flatMap((generator, worker) => {
    const schedule = scheduleOf(options, worker);
    return Array.from({ length: inFlight }, () => chain(options, worker, generator, counter, schedule));
  });
  await Promise.all(chains);
}

/** When the next operation of a worker should start; undefined in a closed loop. */
type Schedule = () => number | undefined;

function scheduleOf({ measurement, rate, generators }: DriveOptions, worker: number): Schedule {
  if (rate === undefined) return () => undefined;
  const stepMs = (generators.length / rate) * 1000;
  // Spread over the first step, so that the workers do not all begin at once.
  let next = measurement.startedAt + (worker * stepMs) / generators.length;
  return () => {
    const scheduled = next;
    next += stepMs;
    return scheduled;
  };
}

/** A worker that has met nothing but failures for so long gives up: some runs end only by successes. */
const failuresInRowMax = 100;

/** One operation after another; late ones of an open loop are started at once and none is dropped. */
async function chain(
  { clock, measurement }: DriveOptions,
  worker: number,
  generator: Generator,
  counter: Counter,
  schedule: Schedule,
): Promise<void> {
  let failures = 0;
  while (!measurement.isOver && failures < failuresInRowMax && counter.take()) {
    const scheduledAt = schedule();
    if (scheduledAt !== undefined) {
      const wait = scheduledAt - clock.now();
      if (wait > 0) await clock.sleep(wait);
      if (measurement.isOver) return;
    }
    const operation = generator.next();
    if (!operation) return;
    const outcome = await measurement.perform(worker, operation, scheduledAt);
    // A system that fails at once must not keep the event loop from everything else.
    failures = outcome ? 0 : failures + 1;
    if (!outcome) await clock.sleep(0);
    generator.ended?.(operation, outcome);
  }
}
