// `pnpm run bench <test> --connectors <list>`

import "dotenv/config";
import { bench, exitCodes } from "./core/bench";
import { sweep } from "./core/sweep";
import { openSession } from "./init/session";
import { parseCommandLine } from "./opts";
import { runProgram } from "./program";

runProgram(import.meta.filename, async () => {
  const commandLine = parseCommandLine("bench", process.argv.slice(2), process.env);
  if (!commandLine) return exitCodes.ok;
  const { config, test, contentionTests, concurrencyTests } = commandLine;
  // If both are given, the contention sweep wins.
  if (contentionTests) return sweep(config, test, openSession(), "contention", contentionTests);
  if (concurrencyTests) return sweep(config, test, openSession(), "concurrency", concurrencyTests);
  return bench(config, test, openSession());
});
