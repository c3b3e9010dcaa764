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
 * Runs jobs one after another, each to its end before the next one starts. A job that is short enough runs at once,
 * within `add`; a longer one is continued in later tasks.
 */
export class JobQueue {
  readonly #jobs: Steps[] = [];
  #isRunning = false;
  #isScheduled = false;
  #generation = 0;

  add(job: Steps): void {
    this.#jobs.push(job);
    if (!this.#isRunning && !this.#isScheduled) this.#run();
  }

  /** Forgets what has not run. */
  clear(): void {
    this.#jobs.length = 0;
    this.#generation += 1;
    this.#isScheduled = false;
  }

  #run(): void {
    this.#isRunning = true;
    const generation = this.#generation;
    const deadline = performance.now() + SLICE_MS;
    try {
      while (this.#jobs.length > 0) {
        const done = this.#jobs[0]!.next().done === true;
        // A callback of the job may have cleared the queue.
        if (generation !== this.#generation) break;
        if (done) this.#jobs.shift();
        if (this.#jobs.length > 0 && performance.now() >= deadline) {
          this.#continueLater();
          break;
        }
      }
    } catch (error) {
      // Jobs handle their errors; one that does not must not block the queue.
      if (generation === this.#generation) this.#jobs.shift();
      if (this.#jobs.length > 0) this.#continueLater();
      throw error;
    } finally {
      this.#isRunning = false;
    }
    if (generation !== this.#generation && this.#jobs.length > 0 && !this.#isScheduled) this.#continueLater();
  }

  #continueLater(): void {
    this.#isScheduled = true;
    const generation = this.#generation;
    nextTask(() => {
      if (generation !== this.#generation) return;
      this.#isScheduled = false;
      this.#run();
    });
  }
}
