// Measures operations: latencies by kind, the series of seconds, timeouts (sections 14.1 and 5.3 to 5.7).

import type { Connector } from "../connectors/connector";
import type { Clock } from "../core/clock";
import { LatencyHistogram } from "../core/histogram";
import type { SeriesPoint } from "../core/window";
import type { Operation, Outcome, RunOperation } from "./workload";

export interface MeasurementOptions {
  clock: Clock;
  workers: Connector[];
  ops: Record<string, RunOperation>;
  /** Successes after it do not count; none for runs that end otherwise. */
  seconds?: number;
  warmupSec: number;
  opTimeoutMs: number;
  minOpTimeoutMs: number;
  tailSlackMs: number;
  logError?: (message: string) => void;
  /** Called at the start, after each second, and at the end, with the point that the second has made. */
  onInterval?: (point: SeriesPoint | undefined) => void;
}

/** What became of the operations of one kind. */
export interface KindResult {
  count: number;
  ok: number;
  miss: number;
  errors: number;
  histogram: LatencyHistogram;
}

/** An operation on its way. A class and no closures: the client's own work must not be what is measured. */
class InFlight {
  isSettled = false;

  constructor(
    readonly name: string,
    readonly operation: string,
    readonly kind: KindResult,
    readonly startedAt: number,
    readonly deadline: number,
    readonly resolve: (outcome: Outcome | undefined) => void,
  ) {}
}

const intervalMs = 1000;
/** How late an expired operation may be noticed. */
const timeoutCheckMs = 20;
const distinctErrorsMax = 20;

export class Measurement {
  readonly kinds = new Map<string, KindResult>();
  readonly timeSeries: SeriesPoint[] = [];
  readonly histogram = new LatencyHistogram();
  readonly steadyHistogram = new LatencyHistogram();
  readonly errorSamples = new Map<string, number>();
  samples = 0;
  misses = 0;
  errors = 0;
  timeouts = 0;
  /** Operations without an answer when the window ended. */
  unfinished = 0;
  completedTotal = 0;
  /** Undefined until an operation has started. */
  startedAt = 0;
  lastCompletionAt = 0;
  partialPoint: SeriesPoint = { tSec: 0, tps: 0, p50_ms: 0, p95_ms: 0, p99_ms: 0, samples: 0, dtMs: 0 };
  readonly #options: MeasurementOptions;
  readonly #clock: Clock;
  /** In order of their start, which is that of their deadlines. */
  readonly #inFlight = new Set<InFlight>();
  readonly #interval = new LatencyHistogram();
  /** Successes of the interval; its histogram has the ages of what timed out or did not end as well. */
  #intervalSamples = 0;
  #isClosed = false;
  #intervalStart = 0;
  #endAt = Number.POSITIVE_INFINITY;

  constructor(options: MeasurementOptions) {
    this.#options = options;
    this.#clock = options.clock;
  }

  /** One per worker. */
  get connections(): readonly Connector[] {
    return this.#options.workers;
  }

  /** Whether the system has a kind of operation: some have more than others. */
  has(kind: string): boolean {
    return Object.hasOwn(this.#options.ops, kind);
  }

  /** Whether no operation may be started any more. */
  get isOver(): boolean {
    return this.#clock.now() >= this.#endAt;
  }

  /** Seconds from the start to the last completion, or the whole window of a timed run. */
  get elapsedSeconds(): number {
    return this.#options.seconds ?? Math.max(0, this.lastCompletionAt - this.startedAt) / 1000;
  }

  /** Starts the clock, lets `drive` perform operations, and waits for its end. */
  async measure(drive: () => Promise<void>): Promise<void> {
    const { onInterval, seconds } = this.#options;
    onInterval?.(undefined);
    this.startedAt = this.lastCompletionAt = this.#intervalStart = this.#clock.now();
    if (seconds !== undefined) this.#endAt = this.startedAt + seconds * 1000;
    const stopTimeouts = this.#clock.every(timeoutCheckMs, () => this.#expire());
    const stopSeries = this.#clock.every(intervalMs, () => this.#endInterval());
    try {
      await drive();
    } finally {
      stopSeries();
      stopTimeouts();
    }
    this.#close();
    this.partialPoint = this.#takePoint(Math.min(this.#clock.now(), this.#endAt));
    onInterval?.(undefined);
  }

  /**
   * Performs one operation on the connection of a worker. Never rejects; undefined says that it failed or timed out.
   * `scheduledAt` is when it should have started, in an open loop.
   */
  perform(worker: number, operation: Operation, scheduledAt?: number): Promise<Outcome | undefined> {
    const { ops, workers, opTimeoutMs, minOpTimeoutMs, tailSlackMs } = this.#options;
    const run = ops[operation.kind];
    if (!run) throw new Error(`${workers[worker]!.name} has no operation ${operation.kind}`);
    const kind = this.#kind(operation.kind);
    kind.count++;
    const now = this.#clock.now();
    const startedAt = scheduledAt ?? now;
    const timeoutMs = Math.max(minOpTimeoutMs, Math.min(opTimeoutMs, this.#endAt - now + tailSlackMs));
    const connector = workers[worker]!;
    return new Promise((resolve) => {
      const inFlight = new InFlight(
        connector.name,
        operation.kind,
        kind,
        startedAt,
        now + timeoutMs,
        resolve,
      );
      this.#inFlight.add(inFlight);
      let answer: Promise<Outcome>;
      try {
        answer = run(connector, operation.args);
      } catch (error) {
        answer = Promise.reject(error);
      }
      answer.then(
        (outcome) => {
          if (inFlight.isSettled) return;
          this.#succeeded(inFlight, outcome);
          this.#settle(inFlight, outcome);
        },
        (error: unknown) => {
          if (inFlight.isSettled) return;
          if (this.isOver) this.#close();
          this.errors++;
          kind.errors++;
          this.#note(error instanceof Error ? error.message : String(error));
          this.#settle(inFlight, undefined);
        },
      );
    });
  }

  /** Once, at the first moment after the end of a timed window: what has no answer counts with its age. */
  #close(): void {
    if (this.#isClosed || this.#endAt === Number.POSITIVE_INFINITY) return;
    this.#isClosed = true;
    for (const { kind, startedAt } of this.#inFlight) {
      if (startedAt >= this.#endAt) continue;
      this.unfinished++;
      this.#recordAge(kind, this.#endAt - startedAt);
    }
  }

  #recordAge(kind: KindResult, milliseconds: number): void {
    kind.histogram.record(milliseconds);
    this.#interval.record(milliseconds);
  }

  #settle(inFlight: InFlight, outcome: Outcome | undefined): void {
    inFlight.isSettled = true;
    this.#inFlight.delete(inFlight);
    inFlight.resolve(outcome);
  }

  #kind(name: string): KindResult {
    let kind = this.kinds.get(name);
    if (!kind) {
      kind = { count: 0, ok: 0, miss: 0, errors: 0, histogram: new LatencyHistogram() };
      this.kinds.set(name, kind);
    }
    return kind;
  }

  #succeeded({ kind, startedAt }: InFlight, outcome: Outcome): void {
    const now = this.#clock.now();
    if (now > this.#endAt) this.#close();
    this.lastCompletionAt = now;
    if (!outcome.ok) {
      this.errors++;
      kind.errors++;
      this.#note("answered with a refusal");
      return;
    }
    this.completedTotal++;
    if (now > this.#endAt) return;
    if (outcome.miss) {
      this.misses++;
      kind.miss++;
      return;
    }
    this.samples++;
    this.#intervalSamples++;
    kind.ok++;
    this.#recordAge(kind, now - startedAt);
  }

  #expire(): void {
    const now = this.#clock.now();
    if (now > this.#endAt) this.#close();
    for (const operation of this.#inFlight) {
      if (operation.deadline > now) break;
      this.timeouts++;
      if (now <= this.#endAt) this.#recordAge(operation.kind, now - operation.startedAt);
      operation.kind.errors++;
      this.#note(`${operation.name}: ${operation.operation} timed out`);
      this.#settle(operation, undefined);
    }
  }

  #note(message: string): void {
    this.#options.logError?.(message);
    const count = this.errorSamples.get(message);
    if (count !== undefined || this.errorSamples.size < distinctErrorsMax) {
      this.errorSamples.set(message, (count ?? 0) + 1);
    }
  }

  #endInterval(): void {
    const now = this.#clock.now();
    // The rest of the window becomes the partial point.
    if (now > this.#endAt) return;
    const point = this.#takePoint(now);
    this.timeSeries.push(point);
    this.#options.onInterval?.(point);
  }

  #takePoint(now: number): SeriesPoint {
    const dtMs = Math.max(0, now - this.#intervalStart);
    const samples = this.#intervalSamples;
    const tSec = Math.round((now - this.startedAt) / 100) / 10;
    this.histogram.add(this.#interval);
    if (tSec >= this.#options.warmupSec) this.steadyHistogram.add(this.#interval);
    const point: SeriesPoint = {
      tSec,
      tps: dtMs === 0 ? 0 : (samples * 1000) / dtMs,
      p50_ms: this.#interval.percentile(50),
      p95_ms: this.#interval.percentile(95),
      p99_ms: this.#interval.percentile(99),
      samples,
      dtMs,
    };
    this.#interval.reset();
    this.#intervalSamples = 0;
    this.#intervalStart = now;
    return point;
  }
}
