// `pnpm run bench:gate <commit>`: this tree against another commit, in alternating runs on this machine.
//
// The server of each tree is driven by the same client with the same modules. It fails if throughput, latency or server CPU
// per transfer of any load is worse by more than the tolerance and beyond noise; the rule is in core/compare.ts.

import "dotenv/config";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import cac from "cac";
import { type Config, UsageError } from "./config";
import { chooseCases } from "./core/bench";
import { type Comparison, compare, type Round, roundsLeast } from "./core/compare";
import { sessionUntilIdle } from "./core/idle";
import type { RunResult } from "./core/result";
import { timestamp, writeJson } from "./core/results";
import { runOnce } from "./core/runner";
import { prepareScriptCommand } from "./init/commands";
import { programsOfCommit } from "./init/other_tree";
import { openSession, type Session } from "./init/session";
import { parseCommandLine } from "./opts";
import { markdownTable } from "./report/format";
import type { TestCase } from "./tests/find";
import { transferRun } from "./workloads/transfers/workload";

const test = "test-1";

interface Side {
  name: "base" | "head";
  /** Directory of the built programs. */
  programs: string;
}

interface Load {
  alpha: number;
  inFlight: number | undefined;
}

interface Metric {
  name: string;
  higherIsBetter: boolean;
  of(result: RunResult): number;
}

const loads: Load[] = [
  { alpha: 1.5, inFlight: 40 },
  { alpha: 0, inFlight: undefined },
];

const metrics: Metric[] = [
  { name: "TPS", higherIsBetter: true, of: (result) => result.tps },
  { name: "p50 ms", higherIsBetter: false, of: (result) => result.p50_ms },
  {
    name: "server CPU per transfer",
    higherIsBetter: false,
    of: (result) => 1 / Math.max(1e-9, result.cpu?.ops_per_cpu_s ?? 0),
  },
];

export interface GateRow extends Comparison {
  system: string;
  load: string;
  metric: string;
  rounds: Round[];
}

const loadName = ({ alpha, inFlight }: Load) => `alpha ${alpha}, ${inFlight ?? 1} in flight`;

/** One run of one side, on a server of its own with fresh data. */
async function measure(
  config: Config,
  session: Session,
  testCase: TestCase,
  side: Side,
  load: Load,
): Promise<RunResult> {
  const definition = await testCase.definition();
  const quiet = () => undefined;
  const prepared = await definition.prepare({
    ...session.context(config, test),
    programs: side.programs,
    say: quiet,
  });
  try {
    const result = await runOnce({
      ...{ config, prepared },
      ops: await testCase.ops(),
      run: transferRun(config, { ...load, concurrency: config.concurrency }),
      connect: () => definition.create(config, prepared),
      say: quiet,
    });
    if (result.invalid.length > 0)
      throw new Error(`${side.name}: an invalid run: ${result.invalid.join("; ")}`);
    return result;
  } finally {
    await prepared.stop();
  }
}

export async function gate(
  config: Config,
  session: Session,
  sides: [Side, Side],
  tolerancePct: number,
): Promise<GateRow[]> {
  const { cases } = chooseCases(config, test);
  const rows: GateRow[] = [];
  for (const testCase of cases) {
    for (const load of loads) {
      const results: Record<Side["name"], RunResult>[] = [];
      for (let round = 1; round <= config.runs; round++) {
        const order = round % 2 ? sides : [...sides].reverse();
        const measured: Partial<Record<Side["name"], RunResult>> = {};
        for (const side of order) {
          measured[side.name] = await measure(config, session, testCase, side, load);
          const tps = Math.round(measured[side.name]!.tps).toLocaleString("en-US");
          session.say(
            `${testCase.system}, ${loadName(load)}, round ${round}/${config.runs}, ${side.name}: ${tps} TPS`,
          );
        }
        results.push(measured as Record<Side["name"], RunResult>);
      }
      for (const metric of metrics) {
        const rounds = results.map(({ base, head }) => ({ base: metric.of(base), head: metric.of(head) }));
        const comparison = compare(rounds, metric.higherIsBetter, tolerancePct);
        rows.push({
          system: testCase.system,
          load: loadName(load),
          metric: metric.name,
          rounds,
          ...comparison,
        });
      }
    }
  }
  return rows;
}

const signed = (value: number) => `${value > 0 ? "+" : ""}${value.toFixed(1)} %`;

export function gateTable(rows: readonly GateRow[]): string {
  const header = ["system", "load", "figure", "slowdown", "noise", "verdict"];
  const lines = rows.map(({ system, load, metric, slowdownPct, noisePct, verdict }) => [
    ...[system, load, metric],
    ...[signed(slowdownPct), `±${noisePct.toFixed(1)} %`, verdict],
  ]);
  return markdownTable(header, lines);
}

/** What the figures say together; that they show no slowdown says little where they are too noisy to show one. */
export function conclusionOf(rows: readonly GateRow[], tolerancePct: number) {
  const slower = rows.filter(({ verdict }) => verdict === "slower").length;
  const noisy = rows.filter(({ noisePct }) => noisePct > tolerancePct).length;
  const lines = [slower === 0 ? "not slower" : `slower in ${slower} of ${rows.length} figures`];
  if (noisy > 0) {
    lines.unshift(
      `warning: in ${noisy} of ${rows.length} figures the noise is above the tolerance of ${tolerancePct} %: a slowdown of ` +
        "that size may go unseen; more --runs, more --seconds or a quieter machine help",
    );
  }
  return { lines, isSlower: slower > 0 };
}

const directoryOf = (path: string): string => {
  const directory = resolve(path);
  if (!existsSync(join(directory, "spacetimedb-standalone")))
    throw new UsageError(`${directory} has no spacetimedb-standalone`);
  return directory;
};

async function main(): Promise<number> {
  const cli = cac("bench:gate");
  const command = cli
    .command("[commit]", "compare this tree with a commit; fails if this tree is slower")
    .option("--runs <n>", "rounds per load (7)")
    .option("--seconds <n>", "length of each run (10)")
    .option("--connectors <list>", "which (lightcone,spacetimedb_rust)")
    .option("--concurrency <n>", "connections (64)")
    .option("--accounts <n>", "accounts (100000)")
    .option("--tolerance <percent>", "slowdown that is accepted (5)")
    .option("--force", "run although the machine is busy")
    .option("--base-bin <directory>", "built programs to compare with, instead of a commit")
    .option("--head-bin <directory>", "built programs of this tree, instead of building them");
  cli.help();
  const { args, options } = cli.parse(process.argv, { run: false });
  if (options["help"]) return 0;
  command.checkUnknownOptions();
  command.checkUnusedArgs();
  const text = (name: string, fallback: string) => String(options[name] ?? fallback);
  const flags = ["seconds", "runs", "concurrency", "accounts"].flatMap((name, i) => [
    `--${name}`,
    text(name, ["10", "7", "64", "100000"][i]!),
  ]);
  const { config } = parseCommandLine(
    "bench",
    [
      ...[...flags, "--connectors", text("connectors", "lightcone,spacetimedb_rust")],
      ...(options["force"] ? ["--force"] : []),
    ],
    {
      BENCH_PRECOMPUTED_TRANSFER_PAIRS: process.env["BENCH_PRECOMPUTED_TRANSFER_PAIRS"],
      BENCH_RUNS_DIR: process.env["BENCH_RUNS_DIR"],
    },
  )!;
  if (config.runs < roundsLeast)
    throw new UsageError(`--runs must be at least ${roundsLeast}: fewer say nothing about noise`);
  const tolerancePct = Number(options["tolerance"] ?? 5);
  if (!(tolerancePct >= 0)) throw new UsageError(`--tolerance is a percentage, not ${options["tolerance"]}`);
  const commit = args[0];
  if ((commit === undefined) === (options["baseBin"] === undefined)) {
    throw new UsageError("name a commit to compare with, or --base-bin with its built programs");
  }
  const session = openSession();
  const base = options["baseBin"]
    ? directoryOf(String(options["baseBin"]))
    : await programsOfCommit(commit!, session);
  const head = options["headBin"]
    ? directoryOf(String(options["headBin"]))
    : (await prepareScriptCommand("server")).trim();
  session.say(`base: ${base}, head: ${head}`);
  await sessionUntilIdle(config, session);
  const sides: [Side, Side] = [
    { name: "base", programs: base },
    { name: "head", programs: head },
  ];
  const rows = await gate({ ...config, prep: true }, session, sides, tolerancePct);
  console.log(`\n${gateTable(rows)}\n`);
  const at = new Date();
  const path = writeJson(config.runsDir, `gate-${timestamp(at)}.json`, {
    timestamp: at.toISOString(),
    base: commit ?? base,
    tolerancePct,
    rows,
  });
  session.say(`Wrote results to ${path}`);
  const { lines, isSlower } = conclusionOf(rows, tolerancePct);
  for (const line of lines) session.say(line);
  return isSlower ? 1 : 0;
}

if (process.argv[1] === import.meta.filename) {
  main().then(
    (code) => process.exit(code),
    (error: unknown) => {
      console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
      process.exit(1);
    },
  );
}
