// The engine of every test: performs operations and measures them (sections 5.3 to 5.7 and 14.1): what counts, latencies by
// kind, the series of seconds, timeouts. Which operation starts when is the matter of loops.ts.

import type { Connector } from "../connectors/connector";
import type { Engine, KindResult, Operation, Outcome, RunOperation } from "../workloads/workload";
import type { Clock } from "./clock";
import { LatencyHistogram } from "./histogram";
import { type Listener, OperationInFlight, OperationsInFlight } from "./operations";
import type { SeriesPoint } from "./result";

export interface MeasurementOptions {
  clock: Clock;
  workers: readonly Connector[];
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

const intervalMs = 1000;
/** How late an expired operation may be noticed. */
const timeoutCheckMs = 20;
const distinctErrorsMax = 20;
/** Of an operation that was answered with nothing. */
const success: Outcome = { ok: true };

/** A kind of operation while it is measured. */
export class MeasuredKind implements KindResult {
  count = 0;
  ok = 0;
  miss = 0;
  errors = 0;
  readonly histogram = new LatencyHistogram();
  /** Of the interval: an operation is recorded once, and added to the rest when the interval ends. */
  readonly pending = new LatencyHistogram();

  constructor(
    readonly name: string,
    readonly run: RunOperation,
  ) {}
}

export class Measurement implements Engine {
  readonly clock: Clock;
  readonly kinds = new Map<string, MeasuredKind>();
  /** That of the operation before: mostly the same. */
  #kind: MeasuredKind | undefined;
  readonly timeSeries: SeriesPoint[] = [];
  /**
   * Latencies of what succeeded, and the ages of what had timed out or was without an answer when the window ended: else
   * the slowest operations of a system that stalls would be missing.
   */
  readonly histogram = new LatencyHistogram();
  /** From the warm-up boundary on. */
  readonly steadyHistogram = new LatencyHistogram();
  readonly #errorCounts = new Map<string, number>();
  samples = 0;
  misses = 0;
  noops = 0;
  errors = 0;
  timeouts = 0;
  /** Open loop: operations that were due and could not be started before the end. */
  unsent = 0;
  /** Operations without an answer when the window ended. */
  unfinished = 0;
  completedTotal = 0;
  startedAt = 0;
  lastCompletionAt = 0;
  partialPoint: SeriesPoint = { tSec: 0, tps: 0, p50_ms: 0, p95_ms: 0, p99_ms: 0, samples: 0, dtMs: 0 };
  readonly #options: MeasurementOptions;
  readonly #inFlight = new OperationsInFlight<MeasuredKind>();
  /** What was not started, and at the end of the interval what the kinds have. */
  readonly #interval = new LatencyHistogram();
  /** Successes of the interval; its histogram has more. */
  #intervalSamples = 0;
  #isClosed = false;
  #intervalStart = 0;
  #endAt = Number.POSITIVE_INFINITY;
  #drained: (() => void) | undefined;

  constructor(options: MeasurementOptions) {
    this.#options = options;
    this.clock = options.clock;
  }

  get connections(): readonly Connector[] {
    return this.#options.workers;
  }

  has(kind: string): boolean {
    return Object.hasOwn(this.#options.ops, kind);
  }

  /** Whether no operation may be started any more. */
  get isOver(): boolean {
    return this.clock.now() >= this.#endAt;
  }

  /** When the window ends; infinity for runs that end otherwise. */
  get endAt(): number {
    return this.#endAt;
  }

  get elapsedSeconds(): number {
    return this.#options.seconds ?? Math.max(0, this.lastCompletionAt - this.startedAt) / 1000;
  }

  get errorSamples(): { message: string; count: number }[] {
    return [...this.#errorCounts].map(([message, count]) => ({ message, count }));
  }

  halt(): void {
    this.#endAt = Math.min(this.#endAt, this.clock.now());
  }

  /** Starts the clock, lets `drive` start operations, and waits for the end of all of them. */
  async measure(drive: () => Promise<void>): Promise<void> {
    const { onInterval, seconds } = this.#options;
    onInterval?.(undefined);
    this.startedAt = this.lastCompletionAt = this.#intervalStart = this.clock.now();
    if (seconds !== undefined) this.#endAt = this.startedAt + seconds * 1000;
    const stopTimeouts = this.clock.every(timeoutCheckMs, () => this.#expire());
    const stopSeries = this.clock.every(intervalMs, () => this.#endInterval());
    try {
      await drive();
      stopSeries();
      if (this.#inFlight.count > 0) await new Promise<void>((done) => (this.#drained = done));
    } finally {
      stopSeries();
      stopTimeouts();
    }
    this.#close();
    this.partialPoint = this.#takePoint(Math.min(this.clock.now(), this.#endAt));
    onInterval?.(undefined);
  }

  perform(worker: number, operation: Operation, due?: number): Promise<Outcome | undefined> {
    return new Promise((resolve) => {
      this.launch(worker, operation, { ended: (_operation, outcome) => resolve(outcome) }, due);
    });
  }

  /** Starts an operation, and answers when; the listener is told how it ended. */
  launch(worker: number, operation: Operation, listener: Listener, due?: number): number {
    const { workers, opTimeoutMs, minOpTimeoutMs, tailSlackMs } = this.#options;
    const connector = workers[worker]!;
    const kind = this.#kind?.name === operation.kind ? this.#kind : this.#kindOf(operation.kind, connector);
    kind.count++;
    const now = this.clock.now();
    const timeoutMs = Math.max(minOpTimeoutMs, Math.min(opTimeoutMs, this.#endAt - now + tailSlackMs));
    const deadline = now + timeoutMs;
    const inFlight = new OperationInFlight(
      worker,
      operation,
      kind,
      due ?? now,
      deadline,
      timeoutMs,
      listener,
    );
    this.#inFlight.add(inFlight);
    let answer: Promise<Outcome | undefined | null>;
    try {
      answer = kind.run(connector, operation.args);
    } catch (error) {
      answer = Promise.reject(error);
    }
    answer.then(
      (outcome) => this.#answered(inFlight, outcome ?? success),
      (error: unknown) => this.#failed(inFlight, error),
    );
    return now;
  }

  /** Open loop: an operation that was due before the end and was not started counts with its age. */
  missed(due: number): void {
    this.unsent++;
    this.#interval.record(this.#endAt - due);
  }

  #kindOf(name: string, connector: Connector): MeasuredKind {
    let kind = this.kinds.get(name);
    if (!kind) {
      const run = this.#options.ops[name];
      if (!run) throw new Error(`${connector.name} has no operation ${name}`);
      kind = new MeasuredKind(name, run);
      this.kinds.set(name, kind);
    }
    this.#kind = kind;
    return kind;
  }

  #answered(inFlight: OperationInFlight<MeasuredKind>, outcome: Outcome): void {
    if (inFlight.isSettled) return;
    const now = this.clock.now();
    if (now > this.#endAt) this.#close();
    this.lastCompletionAt = now;
    if (outcome.ok === false) {
      this.errors++;
      inFlight.kind.errors++;
      this.#note("answered with a refusal");
    } else {
      this.#succeeded(inFlight, outcome, now);
    }
    this.#settle(inFlight, outcome);
  }

  #succeeded({ kind, startedAt }: OperationInFlight<MeasuredKind>, outcome: Outcome, now: number): void {
    this.completedTotal++;
    if (outcome.applied === false) this.noops++;
    if (now > this.#endAt) return;
    if (outcome.miss) {
      this.misses++;
      kind.miss++;
      return;
    }
    this.samples++;
    this.#intervalSamples++;
    kind.ok++;
    kind.pending.record(now - startedAt);
  }

  #failed(inFlight: OperationInFlight<MeasuredKind>, error: unknown): void {
    if (inFlight.isSettled) return;
    if (this.clock.now() > this.#endAt) this.#close();
    this.errors++;
    inFlight.kind.errors++;
    this.#note(error instanceof Error ? error.message : String(error));
    this.#settle(inFlight, undefined, error);
  }

  #expire(): void {
    const now = this.clock.now();
    if (now > this.#endAt) this.#close();
    for (let expired = this.#inFlight.expired(now); expired; expired = this.#inFlight.expired(now)) {
      const { worker, operation, kind, startedAt, timeoutMs } = expired;
      const label = this.#options.workers[worker]!.name;
      this.timeouts++;
      kind.errors++;
      if (now <= this.#endAt) kind.pending.record(now - startedAt);
      this.#note(
        `[runOne] ${label} timed out after ${Math.round(timeoutMs)}ms`,
        `${label}: ${operation.kind} timed out`,
      );
      this.#settle(expired, undefined);
    }
  }

  /** Once, at the first moment after the end of a timed window: what has no answer counts with its age. */
  #close(): void {
    if (this.#isClosed || this.#endAt === Number.POSITIVE_INFINITY) return;
    this.#isClosed = true;
    for (const { kind, startedAt } of this.#inFlight.all()) {
      if (startedAt >= this.#endAt) continue;
      this.unfinished++;
      kind.pending.record(this.#endAt - startedAt);
    }
  }

  /** Frees the place of an operation that has ended, and lets its listener go on. */
  #settle(inFlight: OperationInFlight<MeasuredKind>, outcome: Outcome | undefined, error?: unknown): void {
    inFlight.isSettled = true;
    this.#inFlight.remove(inFlight);
    inFlight.listener.ended(inFlight.operation, outcome, error);
    if (this.#inFlight.count === 0) this.#drained?.();
  }

  /** Remembers an error; `kind` stands for messages that differ in numbers only. */
  #note(message: string, kind = message): void {
    this.#options.logError?.(message);
    const count = this.#errorCounts.get(kind);
    if (count !== undefined || this.#errorCounts.size < distinctErrorsMax) {
      this.#errorCounts.set(kind, (count ?? 0) + 1);
    }
  }

  #endInterval(): void {
    const now = this.clock.now();
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
    for (const { histogram, pending } of this.kinds.values()) {
      this.#interval.add(pending);
      histogram.add(pending);
      pending.reset();
    }
    const point: SeriesPoint = {
      tSec,
      tps: dtMs === 0 ? 0 : (samples * 1000) / dtMs,
      p50_ms: this.#interval.percentile(50),
      p95_ms: this.#interval.percentile(95),
      p99_ms: this.#interval.percentile(99),
      samples,
      dtMs,
    };
    this.histogram.add(this.#interval);
    if (tSec >= this.#options.warmupSec) this.steadyHistogram.add(this.#interval);
    this.#interval.reset();
    this.#intervalSamples = 0;
    this.#intervalStart = now;
    return point;
  }
}
