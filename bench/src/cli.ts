// `pnpm run bench <test> --connectors <list>`

import "dotenv/config";
import { bench, exitCodes } from "./core/bench";
import { concurrencyPoints, contentionPoints, sweep } from "./core/sweep";
import { openSession } from "./init/session";
import { parseCommandLine } from "./opts";
import { runProgram } from "./program";

runProgram(import.meta.filename, async () => {
  const commandLine = parseCommandLine("bench", process.argv.slice(2), process.env);
  if (!commandLine) return exitCodes.ok;
  const { config, test, contentionTests, concurrencyTests } = commandLine;
  // If both are given, the contention sweep wins.
  const points = contentionTests
    ? contentionPoints(contentionTests).map((alpha) => ({ alpha }))
    : concurrencyTests && concurrencyPoints(concurrencyTests).map((concurrency) => ({ concurrency }));
  if (points) return sweep(config, test, openSession(), points);
  return bench(config, test, openSession());
});
