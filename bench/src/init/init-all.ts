// `pnpm run prep [test] [--connectors list]`: starts the services that connectors need, publishes modules, seeds.

import "dotenv/config";
import { UsageError } from "../config";
import { parseCommandLine } from "../opts";
import { runProgram } from "../program";
import { type ServicesState, startServices } from "./services";
import { say } from "./session";

export const reportServices = (state: ServicesState): void => {
  for (const [key, { url }] of Object.entries(state.ready)) say(`${key} is ready at ${url}`);
  for (const [key, { reason }] of Object.entries(state.failed))
    say(`${key} is not: ${reason.split("\n")[0]}`);
  say("`pnpm run services stop` ends them");
};

/** 0, or 1 if something failed that was asked for, or 3 if it is a service that the suite cannot start. */
export function exitCodeOf(state: ServicesState, wasAskedFor: boolean): number {
  const failures = Object.values(state.failed).filter(({ isNotRunning }) => wasAskedFor || !isNotRunning);
  if (failures.some(({ isNotRunning }) => !isNotRunning)) return 1;
  return failures.length > 0 ? 3 : 0;
}

export async function prepare(flags: readonly string[]): Promise<number> {
  // Bad flags are told here, not in the log of the background process.
  const commandLine = parseCommandLine("prep", flags, process.env);
  if (!commandLine) return 0;
  const { config } = commandLine;
  if (config.useDocker)
    throw new UsageError("--use-docker: this suite starts its services as processes, without Docker");
  const state = await startServices(flags, say);
  reportServices(state);
  return config.keepGoing ? 0 : exitCodeOf(state, config.connectors !== undefined);
}

runProgram(import.meta.filename, () => prepare(process.argv.slice(2)));
