// Asks the module for a loop inside one of its procedures.

import type { RunOperation } from "../workload";

/** Finds the microseconds that the loop took, by the clock of the module. */
export const benchLoop: RunOperation = async (connection, { op, iters }) => ({
  ok: true,
  found: await connection.call("benchLoop", { op, iters }),
});
