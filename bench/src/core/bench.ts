// `bench`: prepares each connector, performs the runs of a test, writes a file per run, and prints the tables (section 3.4).

import { type Config, UsageError } from "../config";
import { NotRunning } from "../connectors/connector";
import type { ConnectorDefinition, Prepared } from "../connectors/definition";
import type { Session } from "../init/session";
import { progressPrinter } from "../report/progress";
import { writeReports } from "../report/reports";
import { casesOf, type TestCase, testsOf, workloadOf } from "../tests/find";
import type { Workload, WorkloadRun } from "../workloads/workload";
import { fingerprint } from "./hardware";
import { sessionUntilIdle } from "./idle";
import { NotNative, nativeTargetOf, runNative } from "./native";
import type { Absence, Hardware, RunFile, RunResult } from "./result";
import { busyReason, combined, configOfFile, ensureDirectory, fileNameOf, writeJson } from "./results";
import { runOnce } from "./runner";
import { suiteSoftware } from "./software";
import { roundTripMilliseconds } from "./tcp";

export const exitCodes = { ok: 0, failed: 1, notVerified: 2, notRunning: 3 } as const;

/** With several causes the lowest that is not zero counts (section 3.6). */
export const exitCodeOf = (codes: readonly number[]): number =>
  codes.reduce((lowest, code) => (lowest === 0 || (code > 0 && code < lowest) ? code : lowest), 0);

/** The test cases that are asked for; keys without a test case are told as `n/a`. */
export function chooseCases(config: Config, test: string): { cases: TestCase[]; absent: Absence[] } {
  const all = casesOf(test);
  if (!config.connectors) return { cases: all.filter(({ isOptional }) => !isOptional), absent: [] };
  const cases = config.connectors.flatMap((key) => all.find(({ system }) => system === key) ?? []);
  const missing = config.connectors.filter((key) => !cases.some(({ system }) => system === key));
  return { cases, absent: missing.map((system) => ({ system, reason: `n/a: no test case of ${test}` })) };
}

/** One connector in one repetition, with all of its runs. */
export interface Block {
  /** 1-based. */
  run: number;
  testCase: TestCase;
}

/**
 * Every connector once per repetition. The order rotates from one repetition to the next, so that what the one before left
 * behind does not always meet the same system (section 12).
 */
export function planOf(config: Config, cases: readonly TestCase[]): Block[] {
  const blocks: Block[] = [];
  for (let run = 1; run <= config.runs; run++) {
    const first = (run - 1) % Math.max(1, cases.length);
    const rotated = [...cases.slice(first), ...cases.slice(0, first)];
    for (const testCase of rotated) blocks.push({ run, testCase });
  }
  return blocks;
}

export async function bench(config: Config, test: string, session: Session): Promise<number> {
  const chosen = testsOf(test).map((name) => ({ name, ...chooseCases(config, name) }));
  const absent = chosen.flatMap((one) => one.absent);
  for (const { system, reason } of absent) session.say(`${system}: ${reason}`);
  if (chosen.every(({ cases }) => cases.length === 0))
    throw new UsageError(`nothing to run: no chosen connector has the test ${test}`);
  // Before the first run, not after the last one.
  ensureDirectory(config.runsDir);
  if (config.loadGenerator === "native") {
    session.say("native load generator: an experiment of its own, not to be mixed with other results");
  }
  const hardware = fingerprint(session.workDirectory);
  const busyAtStart = await sessionUntilIdle(config, session);
  const codes: number[] = [];
  const files: RunFile[] = [];
  const take = (file: RunFile) => {
    files.push(file);
    const { res } = file.results[0];
    const isWrong = [res, ...res.repetitions.each].some(({ verify }) => verify.ran && !verify.ok);
    if (isWrong) codes.push(exitCodes.notVerified);
  };
  const blocks: Pick<BlockOptions, "config" | "workload" | "block">[] = [];
  for (const { name, cases } of chosen) {
    const workload = await workloadOf(name);
    for (const warning of workload.warnings?.(config) ?? []) session.say(`warning: ${warning}`);
    const settings = { ...config, ...workload.settings?.(config) };
    for (const block of planOf(config, cases)) blocks.push({ config: settings, workload, block });
  }
  const failed = new Set<TestCase>();
  for (const one of blocks) {
    const { testCase } = one.block;
    if (failed.has(testCase)) continue;
    try {
      await runBlock({ ...one, session, hardware, busyAtStart }, take);
    } catch (error) {
      failed.add(testCase);
      const { system } = testCase;
      absent.push({ system, reason: reasonOf(error) });
      session.say(`${system}: ${kindOf(error)}: ${reasonOf(error)}`);
      if (error instanceof NotNative) continue;
      const isNotRunning = error instanceof NotRunning;
      if (!isNotRunning) codes.push(exitCodes.failed);
      else if (config.connectors) codes.push(exitCodes.notRunning);
      if (!isNotRunning && !config.keepGoing) break;
    }
  }
  if (files.length > 0) writeReports(config.runsDir, files, absent, session.say);
  return exitCodeOf(codes);
}

/** Some errors of drivers have a name only. */
const reasonOf = (error: unknown): string =>
  error instanceof Error && error.message !== "" ? error.message : String(error);

const kindOf = (error: unknown): string =>
  error instanceof NotRunning ? "not running" : error instanceof NotNative ? "n/a" : "failed";

interface BlockOptions {
  config: Config;
  session: Session;
  hardware: Hardware;
  /** What was wrong with the machine when the invocation was told to start all the same. */
  busyAtStart: string | undefined;
  workload: Workload;
  block: Block;
}

async function runBlock(options: BlockOptions, take: (file: RunFile) => void): Promise<void> {
  const { config, session, workload, block } = options;
  const { system } = block.testCase;
  const definition = await block.testCase.definition();
  if (config.loadGenerator === "native") nativeTargetOf(definition);
  const prepared = await definition.prepare(session.context(config, workload.name));
  try {
    const rttMs = await roundTripMilliseconds(prepared.url);
    for (const [index, { label, create }] of workload.runs(config).entries()) {
      if (index > 0 && config.prepBetweenAlphas && workload.name === "test-1") await prepared.reseed?.();
      const startedAt = new Date();
      const { run, each } = await runSamples(options, definition, prepared, label, create);
      const file = fileOf(options, definition, prepared, { run, each, startedAt, rttMs });
      take(file);
      if (file.machineBusy !== undefined) session.say(`this run is not to be published: ${file.machineBusy}`);
      session.say(`Wrote results to ${writeJson(config.runsDir, fileNameOf(file), file)}`);
      session.say(`${system} ${workload.name} ${label}: run ${block.run}/${config.runs} done`);
    }
  } finally {
    await prepared.stop();
  }
}

/** The same run as often as the workload repeats itself, each time with fresh data. */
async function runSamples(
  { config, session, workload, block }: BlockOptions,
  definition: ConnectorDefinition,
  prepared: Prepared,
  label: string,
  create: () => WorkloadRun,
): Promise<{ run: WorkloadRun; each: RunResult[] }> {
  const { system } = block.testCase;
  const ops = await block.testCase.ops();
  const count = workload.samples === undefined ? 1 : (config.samples ?? workload.samples);
  const each: RunResult[] = [];
  for (let sample = 1; ; sample++) {
    session.say(`${system} ${workload.name} ${label}${count > 1 ? `: ${sample} of ${count}` : ""}`);
    const run = create();
    const progress = progressPrinter(system, run.limit.mode === "time" ? run.limit.seconds : 0);
    const connect = () => definition.create(config, prepared);
    const common = { config, run, connect, prepared, say: session.say, onPoint: progress.point };
    const result =
      config.loadGenerator === "native"
        ? runNative({ ...common, system, target: nativeTargetOf(definition)(config, prepared) })
        : runOnce({ ...common, ops });
    each.push(await result.finally(() => progress.end()));
    if (sample >= count) return { run, each };
  }
}

interface Performed {
  /** The last one of several repetitions. */
  run: WorkloadRun;
  each: RunResult[];
  startedAt: Date;
  rttMs: number | null;
}

function fileOf(
  { config, workload, block, hardware, busyAtStart }: BlockOptions,
  definition: ConnectorDefinition,
  prepared: Prepared,
  { run, each, startedAt, rttMs }: Performed,
): RunFile {
  const { system, label } = block.testCase;
  const native = config.loadGenerator === "native" ? nativeTargetOf(definition)(config, prepared) : undefined;
  const machineBusy = busyReason(
    busyAtStart,
    each.map(({ cpu }) => cpu),
  );
  const { inFlight, isPipelined } = pipeliningOf(config, run);
  const load = {
    seconds: run.limit.mode === "time" ? run.limit.seconds : 0,
    concurrency: run.concurrency,
    accounts: run.accounts ?? 0,
    alpha: run.alpha ?? null,
  };
  return {
    schemaVersion: 1,
    ...(native && { load_generator: "native" }),
    test: workload.name,
    ...load,
    run: block.run,
    runs: config.runs,
    tag: config.tag,
    startedAt: startedAt.toISOString(),
    ...(machineBusy !== undefined && { machineBusy }),
    config: {
      ...configOfFile(config),
      ...(run.pipelining && isPipelined && { benchPipelined: true, maxInflightPerWorker: inFlight }),
    },
    fairness: {
      ...prepared.fairness,
      ...(native && { clientLanguage: "Rust (native load generator)" }),
      ...(native?.roundTripsPerTx !== undefined && { roundTripsPerTx: native.roundTripsPerTx }),
      pipelined: isPipelined,
      inflight: inFlight,
      rttMs,
    },
    software: { ...suiteSoftware(), ...prepared.software },
    hardware,
    results: [
      {
        ...{ system, label, file: `${system}.ts`, ...load },
        parameters: run.parameters,
        res: combined(each, workload.samples !== undefined),
      },
    ],
  };
}

function pipeliningOf(config: Config, run: WorkloadRun): { inFlight: number; isPipelined: boolean } {
  if (run.pipelining) {
    const { inFlight } = run.pipelining;
    return { inFlight: inFlight ?? 1, isPipelined: inFlight !== undefined };
  }
  const inFlight = config.maxInflightPerWorker ?? 1;
  return { inFlight, isPipelined: inFlight > 1 };
}
