// Times that an application sets.

import { ClientError } from "./client_error";

/** The longest time of a timer. */
const DURATION_MS_MAX = 2 ** 31 - 1;

/** Refuses what no timer can wait for. */
export function checkDuration(name: string, ms: number | undefined): void {
  if (ms === undefined || (ms > 0 && ms <= DURATION_MS_MAX)) return;
  throw new ClientError(
    "LC0847",
    `${name}: ${ms} is not a number of milliseconds from 1 to ${DURATION_MS_MAX}`,
  );
}
