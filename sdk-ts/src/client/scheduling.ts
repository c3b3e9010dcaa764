// Long work in slices, so that a page stays responsive while a million rows arrive.

/** Work that can be interrupted wherever it yields. */
export type Steps<T = void> = Generator<void, T, void>;

/** Does interruptible work in one go. */
export function runToEnd<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** A slice ends after this time; shorter than a frame of 60 Hz, with time left for the page. */
const SLICE_MS = 8;

let taskStarter: ((task: () => void) => void) | undefined;

/** Continues in a new task, after input events and rendering had their turn. */
function nextTask(task: () => void): void {
  taskStarter ??= makeTaskStarter();
  taskStarter(task);
}

function makeTaskStarter(): (task: () => void) => void {
  const { setImmediate } = globalThis as { setImmediate?: (task: () => void) => void };
  if (setImmediate) return (task) => void setImmediate(task);
  // Timers of a browser wait for 4 ms once they are nested.
  if (typeof MessageChannel === "undefined") return (task) => void setTimeout(task);
  const channel = new MessageChannel();
  const waiting: (() => void)[] = [];
  channel.port1.onmessage = () => waiting.shift()?.();
  return (task) => {
    waiting.push(task);
    channel.port2.postMessage(undefined);
  };
}

/**
 * Messages that may wait, in bytes. Whatever comes when there are more is worked off at once and without pauses, down to
 * half of it: the page stands still meanwhile, and so does the socket, whose flow control holds the server back. Nothing is
 * dropped, since a client that gave up would have to load everything again.
 */
export const INBOUND_BYTES_MAX = 64 * 1024 * 1024;

/** Jobs that have run leave the list of the others in such portions. */
const TAKEN_JOBS_MAX = 4096;

/** Bytes of a waiting job beside its message. */
const JOB_BYTES = 512;

interface Job {
  readonly steps: Steps;
  readonly bytes: number;
}

/**
 * Runs jobs one after another, each to its end before the next one starts. A job that is short enough runs at once,
 * within `add`; a longer one is continued in later tasks.
 */
export class JobQueue {
  #current: Steps | undefined;
  /** Jobs that have not begun: those from `#next` on. */
  #jobs: Job[] = [];
  #next = 0;
  #waitingBytes = 0;
  #isRunning = false;
  #isScheduled = false;
  #generation = 0;

  /** `bytes` are those of the message that the job is about. */
  add(steps: Steps, bytes = 0): void {
    if (!this.#isRunning && !this.#isScheduled) {
      // Nothing waits.
      this.#current = steps;
      this.#run(false);
      return;
    }
    this.#jobs.push({ steps, bytes: bytes + JOB_BYTES });
    this.#waitingBytes += bytes + JOB_BYTES;
    if (this.#waitingBytes > INBOUND_BYTES_MAX && !this.#isRunning) this.#run(true);
  }

  /** Forgets what has not run. */
  clear(): void {
    this.#current = undefined;
    this.#jobs = [];
    this.#next = 0;
    this.#waitingBytes = 0;
    this.#generation += 1;
    this.#isScheduled = false;
  }

  /** The job to go on with, if there is one. */
  #begin(): Steps | undefined {
    const job = this.#jobs[this.#next];
    if (!job) return undefined;
    this.#waitingBytes -= job.bytes;
    this.#next += 1;
    // Taking each job off the front would move all others each time.
    if (this.#next === this.#jobs.length || this.#next === TAKEN_JOBS_MAX) {
      this.#jobs.splice(0, this.#next);
      this.#next = 0;
    }
    return job.steps;
  }

  #run(isFull: boolean): void {
    this.#isRunning = true;
    const generation = this.#generation;
    const deadline = performance.now() + SLICE_MS;
    try {
      while ((this.#current ??= this.#begin())) {
        const { done } = this.#current.next();
        // A callback of the job may have cleared the queue.
        if (generation !== this.#generation) break;
        if (done) this.#current = undefined;
        if (isFull ? this.#waitingBytes <= INBOUND_BYTES_MAX / 2 : performance.now() >= deadline) break;
      }
    } catch (error) {
      // Jobs handle their errors; one that does not must not block the queue.
      if (generation === this.#generation) this.#current = undefined;
      throw error;
    } finally {
      this.#isRunning = false;
      if ((this.#current || this.#jobs.length > 0) && !this.#isScheduled) this.#continueLater();
    }
  }

  #continueLater(): void {
    this.#isScheduled = true;
    const generation = this.#generation;
    nextTask(() => {
      if (generation !== this.#generation) return;
      this.#isScheduled = false;
      this.#run(false);
    });
  }
}
