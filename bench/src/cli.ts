// `pnpm run bench <test> --connectors <list>`

import "dotenv/config";
import { UsageError } from "./config";
import { bench, exitCodes } from "./core/bench";
import { sweep } from "./core/sweep";
import { openSession } from "./init/session";
import { parseCommandLine } from "./opts";

async function main(): Promise<number> {
  const commandLine = parseCommandLine("bench", process.argv.slice(2), process.env);
  if (!commandLine) return exitCodes.ok;
  const { config, test, contentionTests, concurrencyTests } = commandLine;
  // If both are given, the contention sweep wins.
  if (contentionTests) return sweep(config, test, openSession(), "contention", contentionTests);
  if (concurrencyTests) return sweep(config, test, openSession(), "concurrency", concurrencyTests);
  return bench(config, test, openSession());
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    const isUsage = error instanceof UsageError || (error instanceof Error && error.name === "CACError");
    console.error(isUsage ? `error: ${(error as Error).message}` : error);
    process.exit(exitCodes.failed);
  },
);
