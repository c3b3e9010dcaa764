// `pnpm run bench:gate <commit>`: this tree against another commit, in alternating runs on this machine.
//
// The servers of both trees run side by side and are loaded one after the other, by the same load generator, with the same
// modules. A load is repeated until its figure is sure enough, or until it has had all its pairs. The gate fails if throughput,
// latency or server CPU per operation of any load is worse by more than the tolerance and beyond noise; the rule is in
// core/compare.ts. A slowdown that buys something has its reason in the commit: a line `Slower: …` in its message.

import "dotenv/config";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Config, kebabCase, UsageError } from "./config";
import type { NativeTarget, Prepared } from "./connectors/definition";
import { chooseCases } from "./core/bench";
import { type Comparison, compare, type Round, roundsLeast } from "./core/compare";
import { fanoutModule, type GateLoad, type GateRun, gateLoads, loadsNamed, runLoad } from "./core/gate_loads";
import { fingerprint } from "./core/hardware";
import { sessionUntilIdle } from "./core/idle";
import { nativeTargetOf } from "./core/native";
import { timestamp, writeJson } from "./core/results";
import { prepareScriptCommand, repositoryDirectory, runCommand } from "./init/commands";
import { programsOfCommit } from "./init/other_tree";
import { openSession, type Session } from "./init/session";
import { publishModule } from "./init/stdb_server";
import { parseCommandLine } from "./opts";
import { readCommandLine, runProgram, type Usage } from "./program";
import { markdownTable } from "./report/format";
import type { TestCase } from "./tests/find";

const test = "test-1";

interface Side {
  name: "base" | "head";
  /** Directory of the built programs. */
  programs: string;
}

interface Metric {
  name: string;
  higherIsBetter: boolean;
  of(run: GateRun): number | undefined;
}

const serverCpu: Metric = {
  name: "server CPU",
  higherIsBetter: false,
  of: (run) => run.cpuMicroseconds,
};

const metrics: Metric[] = [
  serverCpu,
  { name: "operations/s", higherIsBetter: true, of: (run) => run.operationsPerSecond },
  { name: "p50 ms", higherIsBetter: false, of: (run) => run.p50Milliseconds },
];

export interface GateRow extends Comparison {
  system: string;
  load: string;
  metric: string;
  rounds: Round[];
}

export interface GateOptions {
  loads: readonly GateLoad[];
  /** Pairs of runs of each load. */
  pairs: number;
  /** So many if the noise is above half the tolerance until then. */
  pairsMax: number;
  tolerancePct: number;
}

type Pair = Record<Side["name"], GateRun>;
type Ready = Record<Side["name"], { prepared: Prepared; target: NativeTarget }>;

const comparisonOf = (metric: Metric, pairs: readonly Pair[], tolerancePct: number) => {
  const rounds = pairs.map(({ base, head }) => ({ base: metric.of(base) ?? 0, head: metric.of(head) ?? 0 }));
  return { rounds, ...compare(rounds, metric.higherIsBetter, tolerancePct) };
};

/** Starts the servers of both sides, each with fresh data. */
async function ready(
  config: Config,
  session: Session,
  testCase: TestCase,
  sides: readonly Side[],
  needsFanout: boolean,
): Promise<Ready> {
  const definition = await testCase.definition();
  const started: Partial<Ready> = {};
  for (const side of sides) {
    const context = { ...session.context(config, test), programs: side.programs, say: () => undefined };
    const prepared = await definition.prepare(context);
    const target = nativeTargetOf(definition)(config, prepared);
    if (needsFanout) await publishModule(context, target.url, fanoutModule);
    started[side.name] = { prepared, target };
  }
  return started as Ready;
}

/** Pairs of runs of one load; which goes first alternates, so that a machine that gets slower hits both. */
async function pairsOf(options: GateOptions, run: (side: Side["name"]) => Promise<GateRun>): Promise<Pair[]> {
  const { pairs, pairsMax, tolerancePct } = options;
  const measured: Pair[] = [];
  // What both have once only, like the compilation of the module's code.
  await run("base");
  await run("head");
  const isEnough = () =>
    measured.length >= pairs && comparisonOf(serverCpu, measured, tolerancePct).noisePct <= tolerancePct / 2;
  while (measured.length < pairsMax && !isEnough()) {
    const isEven = measured.length % 2 === 0;
    const first = await run(isEven ? "base" : "head");
    const second = await run(isEven ? "head" : "base");
    measured.push(isEven ? { base: first, head: second } : { base: second, head: first });
  }
  return measured;
}

export async function gate(
  config: Config,
  session: Session,
  sides: [Side, Side],
  generator: string,
  options: GateOptions,
): Promise<GateRow[]> {
  const { cases } = chooseCases(config, test);
  const rows: GateRow[] = [];
  for (const testCase of cases) {
    const { system } = testCase;
    session.say(`${system}: starting both servers`);
    const needsFanout = testCase === cases[0] && options.loads.some(({ program }) => program === "fanout");
    const servers = await ready(config, session, testCase, sides, needsFanout);
    for (const load of options.loads) {
      // One system is enough for these: they call a module of their own.
      if (load.program === "fanout" && testCase !== cases[0]) continue;
      const { accounts, seconds } = config;
      const run = (side: Side["name"]) =>
        runLoad({ program: generator, ...servers[side], load, seconds, accounts });
      const pairs = await pairsOf(options, run);
      for (const metric of metrics) {
        if (pairs.some(({ head }) => metric.of(head) === undefined)) continue;
        const comparison = comparisonOf(metric, pairs, options.tolerancePct);
        rows.push({ system, load: load.name, metric: metric.name, ...comparison });
        const { slowdownPct, noisePct } = comparison;
        const figure = `${signed(slowdownPct)} ± ${noisePct.toFixed(1)} %`;
        session.say(`${system}, ${load.name}, ${pairs.length} pairs: ${metric.name} worse by ${figure}`);
      }
    }
    for (const { prepared } of Object.values(servers)) await prepared.stop();
  }
  return rows;
}

const signed = (value: number) => `${value > 0 ? "+" : ""}${value.toFixed(1)} %`;

export const gateTable = (rows: readonly GateRow[]): string =>
  markdownTable(rows, [
    ["system", ({ system }) => system],
    ["load", ({ load }) => load],
    ["figure", ({ metric }) => metric],
    ["slowdown", ({ slowdownPct }) => signed(slowdownPct)],
    ["noise", ({ noisePct }) => `±${noisePct.toFixed(1)} %`],
    ["pairs", ({ rounds }) => String(rounds.length)],
    ["verdict", ({ verdict }) => verdict],
  ]);

/** What the figures say together; that they show no slowdown says little where they are too noisy to show one. */
export function conclusionOf(rows: readonly GateRow[], tolerancePct: number, reason?: string) {
  const slower = rows.filter(({ verdict }) => verdict === "slower").length;
  const noisy = rows.filter(({ noisePct }) => noisePct > tolerancePct).length;
  const lines = [slower === 0 ? "not slower" : `slower in ${slower} of ${rows.length} figures`];
  if (slower > 0)
    lines.push(
      reason === undefined
        ? "the message of the commit says why, in a line `Slower: …`, or it is not merged"
        : `accepted: ${reason}`,
    );
  if (noisy > 0) {
    lines.unshift(
      `warning: in ${noisy} of ${rows.length} figures the noise is above the tolerance of ${tolerancePct} %: a slowdown of ` +
        "that size may go unseen; more --pairs-max, more --seconds or a quieter machine help",
    );
  }
  return { lines, isSlower: slower > 0 && reason === undefined };
}

const directoryOf = (path: string): string => {
  const directory = resolve(path);
  if (!existsSync(join(directory, "spacetimedb-standalone")))
    throw new UsageError(`${directory} has no spacetimedb-standalone`);
  return directory;
};

const git = (...args: string[]) =>
  runCommand("git", args, { workingDirectory: repositoryDirectory }).then((text) => text.trim());

/** Why a commit between `base` and this tree may be slower, if one says so. */
async function reasonSince(base: string): Promise<string | undefined> {
  const messages = await git("log", "--format=%B", `${base}..HEAD`);
  return /^Slower: (.+)$/m.exec(messages)?.[1];
}

const usage: Usage = {
  name: "bench:gate",
  words: "[commit]",
  description: "compare this tree with a commit; fails if this tree is slower",
  options: [
    ["--pairs <n>", "pairs of runs of each load (8)"],
    ["--pairs-max <n>", "pairs of runs of a load that is noisy (24)"],
    ["--seconds <n>", "length of each run (3)"],
    ["--loads <list>", `of ${gateLoads.map(({ name }) => name).join(", ")} (all)`],
    ["--connectors <list>", "which (lightcone,spacetimedb_rust)"],
    ["--accounts <n>", "accounts (100000)"],
    ["--tolerance <percent>", "slowdown that is accepted (5)"],
    ["--record", "keep the result in bench/results/gate, for the chart of docs/benchmarks.md"],
    ["--force", "run although the machine is busy"],
    ["--base-bin <directory>", "built programs to compare with, instead of building those of the commit"],
    ["--head-bin <directory>", "built programs of this tree, instead of building them"],
  ],
};

async function main(): Promise<number> {
  const commandLine = readCommandLine(usage);
  if (!commandLine) return 0;
  const { args, said } = commandLine;
  const number = (name: string, fallback: number, least: number) => {
    const value = said.number(name) ?? fallback;
    if (value >= least) return value;
    throw new UsageError(`--${kebabCase(name)} must be at least ${least}, not ${value}`);
  };
  const { config } = parseCommandLine(
    "bench",
    [
      ...["--seconds", said.text("seconds") ?? "3", "--accounts", said.text("accounts") ?? "100000"],
      ...["--connectors", said.text("connectors") ?? "lightcone,spacetimedb_rust"],
      ...(said.boolean("force") ? ["--force"] : []),
    ],
    { BENCH_RUNS_DIR: process.env["BENCH_RUNS_DIR"] },
  )!;
  const pairs = number("pairs", 8, roundsLeast);
  const gateOptions: GateOptions = {
    pairs,
    pairsMax: Math.max(pairs, number("pairsMax", 24, roundsLeast)),
    tolerancePct: number("tolerance", 5, 0),
    loads: loadsNamed(said.list("loads")),
  };
  const commit = args[0];
  if (commit === undefined && said.text("baseBin") === undefined)
    throw new UsageError("name a commit to compare with, or --base-bin with its built programs");
  const session = openSession();
  const given = (name: string) => {
    const path = said.text(name);
    return path && directoryOf(path);
  };
  const base = given("baseBin") ?? (await programsOfCommit(commit!, session));
  const head = given("headBin") ?? (await prepareScriptCommand("server")).trim();
  const generator = process.env["LIGHTCONE_LOADGEN"] ?? join(head, "lightcone-loadgen");
  session.say(`base: ${base}, head: ${head}`);
  const busy = await sessionUntilIdle(config, session);
  const sides: [Side, Side] = [
    { name: "base", programs: base },
    { name: "head", programs: head },
  ];
  const rows = await gate({ ...config, prep: true }, session, sides, generator, gateOptions);
  console.log(`\n${gateTable(rows)}\n`);
  const at = new Date();
  const result = {
    timestamp: at.toISOString(),
    base: commit === undefined ? base : await git("rev-parse", "--short=12", `${commit}^{commit}`),
    head: await git("rev-parse", "--short=12", "HEAD"),
    hardware: fingerprint(session.workDirectory),
    ...(busy !== undefined && { machineBusy: busy }),
    tolerancePct: gateOptions.tolerancePct,
    rows,
  };
  const isRecorded = said.boolean("record") ?? false;
  const directory = isRecorded ? join(repositoryDirectory, "bench/results/gate") : config.runsDir;
  const name = isRecorded ? `${timestamp(at)}-${result.head}` : `gate-${timestamp(at)}`;
  session.say(`Wrote results to ${writeJson(directory, `${name}.json`, result)}`);
  const reason = commit === undefined ? undefined : await reasonSince(commit);
  const { lines, isSlower } = conclusionOf(rows, gateOptions.tolerancePct, reason);
  for (const line of lines) session.say(line);
  return isSlower ? 1 : 0;
}

runProgram(import.meta.filename, main);
