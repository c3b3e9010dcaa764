// Notices a connection whose other end is gone without a word: a laptop that slept, a network that changed, a server that
// lost its power. Browsers do not show the server's pings, so a client that hears nothing asks something itself.

/** When a connection counts as lost from which nothing comes any more. */
export interface KeepAliveOptions {
  /** Silence after which the server is asked for a sign of life, in milliseconds. Default: 30 000. */
  idleMs?: number;
  /** Further silence after which the connection is given up, in milliseconds. Default: 60 000. */
  timeoutMs?: number;
}

/** While rows are awaited, which may be many, they may be on their way for so many times `timeoutMs`. */
const AWAITING_FACTOR = 5;

/** The shortest time between two looks. */
const TICK_MS_MIN = 10;

/** So much of `timeoutMs` is left once the page has woken up. */
const WAKE_UP_PART = 1 / 6;

interface Handlers {
  /** Sends something that the server answers at once. */
  probe(): void;
  /** Whether the server owes rows. */
  isAwaiting(): boolean;
  onSilent(silentMs: number): void;
}

/**
 * Counts ticks and reads no clock: what arrives costs one assignment, and after a sleep of the computer one tick has
 * passed, not an hour.
 */
export class SilenceWatch {
  readonly #handlers: Handlers;
  readonly #tickMs: number;
  readonly #idleTicks: number;
  readonly #timeoutTicks: number;
  #timer: ReturnType<typeof setInterval> | undefined;
  #hasHeard = false;
  #silentTicks = 0;

  constructor({ idleMs = 30_000, timeoutMs = 60_000 }: KeepAliveOptions, handlers: Handlers) {
    this.#handlers = handlers;
    this.#tickMs = Math.max(TICK_MS_MIN, Math.min(idleMs, timeoutMs) / 6);
    this.#idleTicks = Math.max(1, Math.round(idleMs / this.#tickMs));
    this.#timeoutTicks = Math.max(1, Math.round(timeoutMs / this.#tickMs));
  }

  start(): void {
    this.stop();
    this.#silentTicks = 0;
    this.#timer = setInterval(() => this.#tick(), this.#tickMs);
    // It is the socket that keeps a process running, not the look at it.
    (this.#timer as { unref?(): void }).unref?.();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Something has arrived. */
  heard(): void {
    this.#hasHeard = true;
  }

  /** The page has woken up, or the network is back: it asks now, and waits less long. */
  hurry(): void {
    if (this.#timer === undefined) return;
    this.#hasHeard = false;
    const left = this.#handlers.isAwaiting() ? 1 : WAKE_UP_PART;
    this.#silentTicks = this.#idleTicks + Math.floor(this.#timeoutTicks * (1 - left));
    this.#handlers.probe();
  }

  #tick(): void {
    if (this.#hasHeard) {
      this.#hasHeard = false;
      this.#silentTicks = 0;
      return;
    }
    this.#silentTicks += 1;
    if (this.#silentTicks === this.#idleTicks) this.#handlers.probe();
    const patience = this.#timeoutTicks * (this.#handlers.isAwaiting() ? AWAITING_FACTOR : 1);
    if (this.#silentTicks < this.#idleTicks + patience) return;
    this.stop();
    this.#handlers.onSilent(this.#silentTicks * this.#tickMs);
  }
}
