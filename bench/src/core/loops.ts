// Which operation starts when (sections 5.4, 5.5 and 14.1). Every worker begins in the same turn of the event loop.

import { type Generator, type Limit, later, type Operation, type Outcome } from "../workloads/workload";
import type { Measurement } from "./measurement";
import type { Listener } from "./operations";

export interface InTurnOptions {
  limit: Limit;
  /** Operations that each worker has in flight, each followed by the next when it has ended. */
  inFlight: number;
  /** Open loop: operations per second, over all workers. Late ones start as soon as there is room. */
  rate?: number | undefined;
  /** Whether a worker gives up that meets nothing but failures: some runs end only by successes. */
  givesUp: boolean;
}

const failuresInRowMax = 100;
/** A failure within this time: a system that fails at once must not keep the event loop from everything else. */
const atOnceMs = 1;

/** One operation after another, until the limit. */
export function inTurn(
  measurement: Measurement,
  generators: readonly Generator[],
  options: InTurnOptions,
): Promise<void> {
  const { limit, inFlight, rate, givesUp } = options;
  let left = limit.mode === "count" ? limit.operations : Number.POSITIVE_INFINITY;
  return new Promise((done, failed) => {
    let running = generators.length * inFlight;
    if (running === 0) return done();
    const shared: ChainOptions = {
      measurement,
      failuresMax: givesUp ? failuresInRowMax : Number.POSITIVE_INFINITY,
      take: () => left-- > 0,
      end: () => {
        if (--running === 0) done();
      },
      failed,
    };
    for (const [worker, generator] of generators.entries()) {
      const schedule = scheduleOf(measurement, rate, worker, generators.length);
      for (let chain = 0; chain < inFlight; chain++) new Chain(shared, worker, generator, schedule).begin();
    }
  });
}

/** When the next operation of a worker should start; undefined in a closed loop. */
type Schedule = () => number | undefined;

function scheduleOf(
  { startedAt }: Measurement,
  rate: number | undefined,
  worker: number,
  workers: number,
): Schedule {
  if (rate === undefined) return () => undefined;
  // Spread over the first step, so that the workers do not all begin at once.
  let number = worker;
  return () => {
    const due = startedAt + (number * 1000) / rate;
    number += workers;
    return due;
  };
}

interface ChainOptions {
  measurement: Measurement;
  failuresMax: number;
  /** Whether there is another operation to perform. */
  take(): boolean;
  end(): void;
  failed(error: unknown): void;
}

/** Operations of a worker of which each begins when the one before has ended. */
class Chain implements Listener {
  #failures = 0;
  #startedAt = 0;

  constructor(
    private readonly options: ChainOptions,
    private readonly worker: number,
    private readonly generator: Generator,
    private readonly schedule: Schedule,
  ) {}

  begin(): void {
    const { measurement, failuresMax, take, end } = this.options;
    if (measurement.isOver || this.#failures >= failuresMax || !take()) {
      end();
      return;
    }
    const due = this.schedule();
    const wait = due === undefined ? 0 : due - measurement.clock.now();
    if (wait > 0) this.#launchAfter(wait, due);
    else this.#launch(due);
  }

  #launch(due: number | undefined): void {
    const { measurement, end } = this.options;
    const operation = this.generator.next();
    if (operation === undefined) end();
    else if (operation === later) this.#launchAfter(0, due);
    else this.#startedAt = measurement.launch(this.worker, operation, this, due);
  }

  #launchAfter(milliseconds: number, due: number | undefined): void {
    const { measurement, end } = this.options;
    this.#after(milliseconds, () => (measurement.isOver ? end() : this.#launch(due)));
  }

  ended(operation: Operation, outcome: Outcome | undefined, error: unknown): void {
    try {
      this.generator.ended?.(operation, outcome, error);
      this.#failures = outcome ? 0 : this.#failures + 1;
      const isAtOnce = !outcome && this.options.measurement.clock.now() - this.#startedAt < atOnceMs;
      if (isAtOnce) this.#after(0, () => this.begin());
      else this.begin();
    } catch (broken) {
      this.options.failed(broken);
    }
  }

  #after(milliseconds: number, action: () => void): void {
    this.options.measurement.clock.sleep(milliseconds).then(action).catch(this.options.failed);
  }
}

/** Counts what a worker has in flight. */
class Filler implements Listener {
  inFlight = 0;

  constructor(readonly generator: Generator) {}

  ended(operation: Operation, outcome: Outcome | undefined, error: unknown): void {
    this.inFlight--;
    this.generator.ended?.(operation, outcome, error);
  }
}

/** Fills every worker's window at once, sleeps with a timer of 0 ms and looks again, until the end of the window (section 5.5). */
export async function refilled(
  measurement: Measurement,
  generators: readonly Generator[],
  most: number,
): Promise<void> {
  const fillers = generators.map((generator) => new Filler(generator));
  for (;;) {
    for (const [worker, filler] of fillers.entries()) {
      while (filler.inFlight < most && !measurement.isOver) {
        const operation = filler.generator.next();
        if (operation === undefined || operation === later) break;
        filler.inFlight++;
        measurement.launch(worker, operation, filler);
      }
    }
    if (measurement.isOver) return;
    await measurement.clock.sleep(0);
  }
}

/** How many operations the open loop starts before the event loop gets its turn. */
const launchesAtOnce = 10_000;

/**
 * Operation i is due at start + i / rate, and its latency counts from then: a system that stalls does not hide the time in
 * which others would have come. Late ones start at once, whatever became of those before, and none is dropped; what is in
 * flight is bounded by the rate and the timeout of an operation. Until the end of the window; what was due before it and
 * could not be started counts with its age.
 */
export async function whenDue(
  measurement: Measurement,
  generators: readonly Generator[],
  rate: number,
): Promise<void> {
  const { clock, startedAt } = measurement;
  const listeners = generators.map((generator) => new Filler(generator));
  const dueOf = (i: number) => startedAt + (i * 1000) / rate;
  for (let i = 0; dueOf(i) < measurement.endAt; i++) {
    const due = dueOf(i);
    while (clock.now() < due) await clock.sleep(0);
    if (measurement.isOver) {
      for (let unsent = i; dueOf(unsent) < measurement.endAt; unsent++) measurement.missed(dueOf(unsent));
      return;
    }
    const worker = i % generators.length;
    let operation = generators[worker]!.next();
    for (; operation === later; operation = generators[worker]!.next()) await clock.sleep(0);
    if (operation === undefined) return;
    measurement.launch(worker, operation, listeners[worker]!, due);
    // Others get their turn although this loop is behind.
    if (i % launchesAtOnce === launchesAtOnce - 1) await clock.sleep(0);
  }
}
