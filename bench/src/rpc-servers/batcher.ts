// Many requests per SQLite transaction (section 13): they queue up while one batch is written and synced, and the next batch
// takes all that came meanwhile.

import { isNoop, type Transfer } from "./accounts";
import { status } from "./batched_frames";
import type { SqliteDatabase } from "./sqlite";

/** A transfer, answered with its status. */
export interface QueuedTransfer extends Transfer {
  answer(status: number): void;
}

/** Anything else: called inside the transaction, where it must do all of its writing before it returns. */
export interface QueuedWork {
  work(): unknown;
  /** After the commit, with what `work` returned or threw. */
  answer(result: unknown): void;
  fail(error: unknown): void;
}

type Queued = QueuedTransfer | QueuedWork;

/** Requests that wait for a batch; those of a client that sends faster fail. */
const queueMax = 1_000_000;

const isWork = (queued: Queued): queued is QueuedWork => "work" in queued;

/** What one piece of work threw: it alone fails. */
class Failed {
  constructor(readonly error: unknown) {}
}

function attempt(work: () => unknown): unknown {
  try {
    const result = work();
    // A caller that waits for a promise hears of its failure; where the batch fails, no caller waits.
    if (result instanceof Promise) result.catch(() => undefined);
    return result;
  } catch (error) {
    return new Failed(error);
  }
}

function reject(queued: Queued, error: unknown): void {
  if (isWork(queued)) queued.fail(error);
  else queued.answer(status.internal);
}

export class Batcher {
  #queue: Queued[] = [];
  #isScheduled = false;
  readonly #flushes = new Set<() => void>();
  readonly #apply: (batch: readonly Queued[]) => unknown[];

  constructor(
    database: SqliteDatabase,
    private readonly batchMax: number,
  ) {
    const balanceOf = database.prepare("SELECT balance FROM accounts WHERE id = ?").pluck();
    const setBalance = database.prepare("UPDATE accounts SET balance = ? WHERE id = ?");
    const transfer = ({ from, to, amount }: Transfer): number => {
      if (isNoop({ from, to, amount })) return status.invalid;
      const source = balanceOf.get(from) as number | undefined;
      const destination = balanceOf.get(to) as number | undefined;
      if (source === undefined || destination === undefined) return status.missing;
      if (source < amount) return status.insufficient;
      setBalance.run(source - amount, from);
      setBalance.run(destination + amount, to);
      return status.applied;
    };
    const run = (queued: Queued): unknown => {
      if (!isWork(queued)) return transfer(queued);
      const result = attempt(queued.work);
      // A full disk, say, rolls back the whole batch; a statement that fails undoes itself alone.
      if (!database.inTransaction) throw new Error("SQLite has rolled back the batch");
      return result;
    };
    const transaction = database.transaction((batch: readonly Queued[]) => batch.map(run));
    this.#apply = (batch) => transaction.immediate(batch);
  }

  add(queued: Queued): void {
    if (this.#queue.length >= queueMax) reject(queued, new Error("too many requests wait for a batch"));
    else this.#queue.push(queued);
    this.#schedule();
  }

  /** Adds work; resolves after the commit. */
  run(work: () => unknown): Promise<unknown> {
    return new Promise((answer, fail) => this.add({ work, answer, fail }));
  }

  /** Called once after the batch that is being answered, e.g. to send what was gathered. */
  afterAnswers(flush: () => void): void {
    this.#flushes.add(flush);
  }

  #schedule(): void {
    if (this.#isScheduled || this.#queue.length === 0) return;
    this.#isScheduled = true;
    // After all sockets that have something to read were read.
    setImmediate(() => this.#drain());
  }

  #drain(): void {
    this.#isScheduled = false;
    const batch = this.#queue.splice(0, this.batchMax);
    try {
      const results = this.#apply(batch);
      for (const [i, queued] of batch.entries()) {
        const result = results[i];
        if (!isWork(queued)) queued.answer(result as number);
        else if (result instanceof Failed) queued.fail(result.error);
        else queued.answer(result);
      }
    } catch (error) {
      // Nothing of the batch was committed.
      console.error(error);
      for (const queued of batch) reject(queued, error);
    }
    for (const flush of this.#flushes) flush();
    this.#flushes.clear();
    this.#schedule();
  }
}
