// A busy machine measures something else: a run starts only on an idle one, or when it is told to (section 12).

import { availableParallelism, loadavg } from "node:os";
import { type Config, UsageError } from "../config";
import type { Session } from "../init/session";
import { type Clock, realClock } from "./clock";

/** Of the hardware threads, what the load average of one minute must stay below. */
const loadShareMost = 0.1;
/** What installed and built the suite just now is out of the average by then. */
const waitMillisecondsMax = 180_000;
const pauseMilliseconds = 1_000;

/** Exit code 1, as other commands that cannot be carried out. */
export class MachineBusy extends UsageError {}

export interface IdleOptions {
  isForced: boolean;
  hardwareThreads: number;
  say(line: string): void;
  /** The load average of the last minute. */
  load?: () => number;
  clock?: Pick<Clock, "now" | "sleep">;
}

/**
 * Resolves when the machine is idle; rejects with `MachineBusy` if it does not get idle in time. If it was told not to
 * wait, the answer is what is wrong, for the results.
 */
export async function untilIdle(options: IdleOptions): Promise<string | undefined> {
  const { isForced, hardwareThreads, say, load = () => loadavg()[0] ?? 0, clock = realClock } = options;
  const most = loadShareMost * hardwareThreads;
  const isIdle = () => load() < most;
  if (isIdle()) return undefined;
  const state = () => `the load average is ${load().toFixed(2)}, and should be below ${most.toFixed(2)}`;
  if (isForced) {
    say(`warning: ${state()}: something else runs on this machine (--force: the results say so)`);
    return `at the start, ${state()}`;
  }
  say(`${state()}: waiting up to ${waitMillisecondsMax / 1000} s; --force starts at once`);
  const deadline = clock.now() + waitMillisecondsMax;
  while (clock.now() < deadline) {
    await clock.sleep(pauseMilliseconds);
    if (isIdle()) return undefined;
  }
  throw new MachineBusy(
    `${state()}: something else runs on this machine, and figures taken beside it say nothing. End it, or give --force`,
  );
}

/** Once per invocation, before its first run: what the suite does itself would count later. */
export const sessionUntilIdle = ({ force }: Config, { say }: Session): Promise<string | undefined> =>
  untilIdle({ isForced: force, hardwareThreads: availableParallelism(), say });
