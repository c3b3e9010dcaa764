// A run of `bench` for a workload, from its command line to its files.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bench } from "../../src/core/bench";
import type { RunFile } from "../../src/core/result";
import type { Session } from "../../src/init/session";
import { parseCommandLine } from "../../src/opts";
import { testContext } from "./preparation";

export interface WorkloadBench {
  code: number;
  said: string[];
  /** Results by system, in the order of their names. */
  files: RunFile[];
}

export async function benchInTest(words: string): Promise<WorkloadBench> {
  const runsDirectory = mkdtempSync(join(tmpdir(), "lightcone-bench-runs-"));
  const context = testContext();
  const said: string[] = [];
  const session: Session = {
    workDirectory: context.workDirectory,
    processes: context.processes,
    say: (line) => said.push(line),
    end: () => context.end(),
    context: (config, test) => ({ ...context, config, test, say: session.say }),
  };
  try {
    const argv = [...words.split(" "), "--force"];
    const { config, test } = parseCommandLine("bench", argv, { BENCH_RUNS_DIR: runsDirectory })!;
    const code = await bench(config, test, session);
    const files = readdirSync(runsDirectory)
      .filter((name) => name.startsWith(`${test}-`))
      .sort()
      .map((name) => JSON.parse(readFileSync(join(runsDirectory, name), "utf8")) as RunFile);
    return { code, said, files };
  } finally {
    session.end();
    rmSync(runsDirectory, { recursive: true, force: true });
  }
}
