// The timed window of a run: the two loops, what counts, and the series (sections 5.3 to 5.7).

import { type Connector, isRefusal } from "../connectors/connector";
import type { TestCase } from "../scenario_recipes/test_case";
import type { Clock } from "./clock";
import { CollisionTracker } from "./collision_tracker";
import { LatencyHistogram } from "./histogram";
import type { Ledger } from "./ledger";
import { type Operation, OperationsInFlight } from "./operations";
import { type Pairs, startOfWorker } from "./pairs";

export interface SeriesPoint {
  tSec: number;
  tps: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  samples: number;
  /** True length of the interval. */
  dtMs: number;
}

export interface WindowOptions {
  clock: Clock;
  workers: Connector[];
  run: TestCase["run"];
  pairs: Pairs;
  accounts: number;
  seconds: number;
  warmupSec: number;
  /** Operations in flight per worker; undefined: one, started when the one before has ended (section 5.4). */
  inFlight: number | undefined;
  /** Open loop: operations per second over all workers, each at its own time, whatever became of those before it. */
  rate?: number;
  opTimeoutMs: number;
  minOpTimeoutMs: number;
  tailSlackMs: number;
  ledger?: Ledger;
  logError?: (message: string) => void;
  /** Called at the start, after every interval and at the end, with the point that the interval has made. */
  onInterval?: (point: SeriesPoint | undefined) => void;
}

export interface WindowResult {
  samples: number;
  completedTotal: number;
  errors: number;
  timeouts: number;
  /** Open loop: operations that were due and could not be started before the end. */
  unsent: number;
  /** Operations without an answer when the window ended. */
  unfinished: number;
  noops: number;
  skipped: number;
  errorSamples: { message: string; count: number }[];
  /**
   * Latencies of what succeeded, and the ages of what had timed out or was without an answer when the window ended: else
   * the slowest operations of a system that stalls would be missing.
   */
  histogram: LatencyHistogram;
  /** From the warm-up boundary on. */
  steadyHistogram: LatencyHistogram;
  timeSeries: SeriesPoint[];
  partialPoint: SeriesPoint;
  collisions: CollisionTracker;
}

const intervalMs = 1000;
/** How late an expired operation may be noticed. */
const timeoutCheckMs = 20;
/** How many pairs of equal accounts are passed over before the event loop gets its turn. */
const skipsAtOnce = 10_000;
/** How many operations the open loop starts before the event loop gets its turn. */
const launchesAtOnce = 10_000;
const distinctErrorsMax = 20;
const amount = 1;

export class MeasuredWindow {
  readonly #options: WindowOptions;
  readonly #clock: Clock;
  readonly #inFlight = new OperationsInFlight();
  readonly #inFlightOfWorker: Uint32Array;
  readonly #cursor: Uint32Array;
  readonly #interval = new LatencyHistogram();
  /** Successes of the interval; its histogram has more. */
  #intervalSamples = 0;
  #isClosed = false;
  readonly #errors = new Map<string, number>();
  readonly #result: WindowResult;
  #start = 0;
  #endAt = 0;
  #intervalStart = 0;
  #resumes: ((worker: number) => void) | undefined;
  #drained: (() => void) | undefined;

  constructor(options: WindowOptions) {
    this.#options = options;
    this.#clock = options.clock;
    const { pairs, workers } = options;
    let usable = 0;
    while (usable < pairs.length && pairs.from[usable] === pairs.to[usable]) usable++;
    if (usable === pairs.length)
      throw new Error("no pair of two different accounts: more accounts or a lower alpha");
    this.#inFlightOfWorker = new Uint32Array(workers.length);
    this.#cursor = Uint32Array.from(workers, (_, i) => startOfWorker(i, workers.length, pairs.length));
    this.#result = {
      samples: 0,
      completedTotal: 0,
      errors: 0,
      timeouts: 0,
      unsent: 0,
      unfinished: 0,
      noops: 0,
      skipped: 0,
      errorSamples: [],
      histogram: new LatencyHistogram(),
      steadyHistogram: new LatencyHistogram(),
      timeSeries: [],
      partialPoint: { tSec: 0, tps: 0, p50_ms: 0, p95_ms: 0, p99_ms: 0, samples: 0, dtMs: 0 },
      collisions: new CollisionTracker(options.accounts),
    };
  }

  /** Ends the window now; what is in flight is still waited for. */
  halt(): void {
    this.#endAt = Math.min(this.#endAt, this.#clock.now());
  }

  async measure(): Promise<WindowResult> {
    const { seconds, inFlight, rate, onInterval } = this.#options;
    onInterval?.(undefined);
    this.#start = this.#intervalStart = this.#clock.now();
    this.#endAt = this.#start + seconds * 1000;
    const stopTimeouts = this.#clock.every(timeoutCheckMs, () => this.#expire());
    const stopSeries = this.#clock.every(intervalMs, () => this.#endInterval());
    try {
      if (rate !== undefined) await this.#openLoop(rate);
      else if (inFlight === undefined) await this.#loop();
      else await this.#pipelinedLoop(inFlight);
      stopSeries();
      if (this.#inFlight.count > 0) await new Promise<void>((done) => (this.#drained = done));
    } finally {
      stopSeries();
      stopTimeouts();
    }
    this.#close();
    this.#result.partialPoint = this.#takePoint(Math.min(this.#clock.now(), this.#endAt));
    onInterval?.(undefined);
    this.#result.errorSamples = [...this.#errors].map(([message, count]) => ({ message, count }));
    return this.#result;
  }

  /** One operation per worker at a time; the next starts when the one before has ended. */
  #loop(): Promise<void> {
    return new Promise((done) => {
      let running = this.#options.workers.length;
      this.#resumes = (worker) => {
        if (this.#clock.now() >= this.#endAt) {
          if (--running === 0) done();
        } else if (!this.#launch(worker)) {
          void this.#clock.sleep(0).then(() => this.#resumes?.(worker));
        }
      };
      for (let worker = 0; worker < this.#options.workers.length; worker++) this.#resumes(worker);
    });
  }

  /** Fills every worker's window at once, sleeps with a timer of 0 ms and looks again (section 5.5). */
  async #pipelinedLoop(most: number): Promise<void> {
    const workers = this.#options.workers.length;
    for (;;) {
      for (let worker = 0; worker < workers; worker++) {
        while (this.#inFlightOfWorker[worker]! < most && this.#clock.now() < this.#endAt) {
          if (!this.#launch(worker)) break;
        }
      }
      if (this.#clock.now() >= this.#endAt) return;
      await this.#clock.sleep(0);
    }
  }

  /**
   * Operation i is due at start + i / rate, and its latency counts from then: a system that stalls does not hide the time
   * in which others would have come. Late ones start at once and none is dropped; what is in flight is bounded by the
   * rate and the timeout of an operation.
   */
  async #openLoop(rate: number): Promise<void> {
    const workers = this.#options.workers.length;
    for (let i = 0; ; i++) {
      const due = this.#start + (i * 1000) / rate;
      if (due >= this.#endAt) return;
      while (this.#clock.now() < due) await this.#clock.sleep(0);
      if (this.#clock.now() >= this.#endAt) {
        this.#countUnsent(i, rate);
        return;
      }
      while (!this.#launch(i % workers, due)) await this.#clock.sleep(0);
      // Others get their turn although this loop is behind.
      if (i % launchesAtOnce === launchesAtOnce - 1) await this.#clock.sleep(0);
    }
  }

  /** The open loop fell behind: from operation `first` on, what was due before the end counts with its age. */
  #countUnsent(first: number, rate: number): void {
    for (let i = first; ; i++) {
      const due = this.#start + (i * 1000) / rate;
      if (due >= this.#endAt) return;
      this.#result.unsent++;
      this.#interval.record(this.#endAt - due);
    }
  }

  /** Once, at the first moment after the end: what has no answer counts with its age. */
  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const operation of this.#inFlight.all()) {
      if (operation.startedAt >= this.#endAt) continue;
      this.#result.unfinished++;
      this.#interval.record(this.#endAt - operation.startedAt);
    }
  }

  /** Starts a worker's next operation; false if too many pairs in a row are to be skipped. */
  #launch(worker: number, due?: number): boolean {
    const { pairs, workers, run, opTimeoutMs, minOpTimeoutMs, tailSlackMs } = this.#options;
    let cursor = this.#cursor[worker]!;
    let skipped = 0;
    while (pairs.from[cursor] === pairs.to[cursor]) {
      this.#result.skipped++;
      if (++cursor === pairs.length) cursor = 0;
      if (++skipped === skipsAtOnce) {
        this.#cursor[worker] = cursor;
        return false;
      }
    }
    const from = pairs.from[cursor]!;
    const to = pairs.to[cursor]!;
    this.#cursor[worker] = cursor + 1 === pairs.length ? 0 : cursor + 1;
    this.#result.collisions.begin(from);
    this.#result.collisions.begin(to);
    const now = this.#clock.now();
    const timeoutMs = Math.max(minOpTimeoutMs, Math.min(opTimeoutMs, this.#endAt - now + tailSlackMs));
    const operation: Operation = {
      worker,
      from,
      to,
      startedAt: due ?? now,
      deadline: now + timeoutMs,
      timeoutMs,
      isSettled: false,
      previous: undefined,
      next: undefined,
    };
    this.#inFlight.add(operation);
    this.#inFlightOfWorker[worker]!++;
    let answer: Promise<unknown>;
    try {
      answer = run(workers[worker]!, from, to, amount);
    } catch (error) {
      answer = Promise.reject(error);
    }
    answer.then(
      (result) => this.#succeeded(operation, result),
      (error: unknown) => this.#failed(operation, error),
    );
    return true;
  }

  #succeeded(operation: Operation, result: unknown): void {
    if (operation.isSettled) return;
    const now = this.#clock.now();
    if (now > this.#endAt) this.#close();
    this.#result.completedTotal++;
    const isNoop =
      typeof result === "object" && result !== null && "applied" in result && result.applied === false;
    if (isNoop) this.#result.noops++;
    else this.#options.ledger?.acknowledged(operation.from, operation.to, amount);
    if (now <= this.#endAt) {
      this.#result.samples++;
      this.#intervalSamples++;
      this.#interval.record(now - operation.startedAt);
    }
    this.#settle(operation);
  }

  #failed(operation: Operation, error: unknown): void {
    if (operation.isSettled) return;
    if (this.#clock.now() > this.#endAt) this.#close();
    this.#result.errors++;
    if (!isRefusal(error)) this.#options.ledger?.outcomeUnknown(operation.from, operation.to);
    this.#note(error instanceof Error ? error.message : String(error));
    this.#settle(operation);
  }

  #expire(): void {
    const now = this.#clock.now();
    if (now > this.#endAt) this.#close();
    for (let operation = this.#inFlight.expired(now); operation; operation = this.#inFlight.expired(now)) {
      this.#result.timeouts++;
      if (now <= this.#endAt) this.#interval.record(now - operation.startedAt);
      this.#options.ledger?.outcomeUnknown(operation.from, operation.to);
      const label = this.#options.workers[operation.worker]!.name;
      this.#note(`[runOne] ${label} timed out after ${Math.round(operation.timeoutMs)}ms`, "timed out");
      this.#settle(operation);
    }
  }

  /** Frees the place of an operation that has ended, and lets its worker go on. */
  #settle(operation: Operation): void {
    operation.isSettled = true;
    this.#inFlight.remove(operation);
    this.#inFlightOfWorker[operation.worker]!--;
    this.#result.collisions.end(operation.from);
    this.#result.collisions.end(operation.to);
    this.#resumes?.(operation.worker);
    if (this.#inFlight.count === 0) this.#drained?.();
  }

  /** Remembers an error; `kind` stands for messages that differ in numbers only. */
  #note(message: string, kind = message): void {
    this.#options.logError?.(message);
    const count = this.#errors.get(kind);
    if (count !== undefined || this.#errors.size < distinctErrorsMax)
      this.#errors.set(kind, (count ?? 0) + 1);
  }

  #endInterval(): void {
    const now = this.#clock.now();
    // The rest of the window becomes the partial point.
    if (now > this.#endAt) return;
    const point = this.#takePoint(now);
    this.#result.timeSeries.push(point);
    this.#options.onInterval?.(point);
  }

  #takePoint(now: number): SeriesPoint {
    const dtMs = Math.max(0, now - this.#intervalStart);
    const samples = this.#intervalSamples;
    const tSec = Math.round((now - this.#start) / 100) / 10;
    const point: SeriesPoint = {
      tSec,
      tps: dtMs === 0 ? 0 : (samples * 1000) / dtMs,
      p50_ms: this.#interval.percentile(50),
      p95_ms: this.#interval.percentile(95),
      p99_ms: this.#interval.percentile(99),
      samples,
      dtMs,
    };
    this.#result.histogram.add(this.#interval);
    if (tSec >= this.#options.warmupSec) this.#result.steadyHistogram.add(this.#interval);
    this.#interval.reset();
    this.#intervalSamples = 0;
    this.#intervalStart = now;
    return point;
  }
}
