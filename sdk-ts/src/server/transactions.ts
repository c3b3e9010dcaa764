import { Timestamp } from "../core/timestamp";
import { console } from "./console";
import { sys } from "./sys";

/**
 * Runs `body` in a transaction of a procedure or handler, and once more if committing fails. An error in `body` rolls the
 * transaction back.
 */
export function inTransaction<Ctx, Result>(
  contextAt: (start: Timestamp) => Ctx,
  body: (ctx: Ctx) => Result,
): Result {
  const run = (): Result => {
    const timestamp = new Timestamp(sys.procedure_start_mut_tx());
    try {
      return body(contextAt(timestamp));
    } catch (error) {
      sys.procedure_abort_mut_tx();
      throw error;
    }
  };
  const result = run();
  try {
    sys.procedure_commit_mut_tx();
    return result;
  } catch {
    console.warn("committing anonymous transaction failed");
  }
  const second = run();
  try {
    sys.procedure_commit_mut_tx();
  } catch (cause) {
    throw new Error("transaction retry failed again", { cause });
  }
  return second;
}
