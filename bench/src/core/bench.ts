// `bench`: prepares each connector, runs its loads, writes a file per run, and prints the tables (section 3.4).

import { type Config, UsageError } from "../config";
import { type ConnectorDefinition, NotRunning } from "../connectors/connector";
import { loadConnector } from "../connectors/registry";
import type { Prepared } from "../init/prepare";
import type { Session } from "../init/session";
import { progressPrinter } from "../report/progress";
import { writeReports } from "../report/reports";
import { type FoundTestCase, testCasesOf } from "../tests/test_cases";
import { fingerprint, type Hardware } from "./hardware";
import { sessionUntilIdle } from "./idle";
import { NotNative, nativeTargetOf, requireNativeTarget, runNative } from "./native";
import { type Block, type Load, planOf } from "./plan";
import { busyReason, configOfFile, ensureDirectory, fileNameOf, type RunFile, writeJson } from "./results";
import { roundTripMilliseconds } from "./round_trip";
import { runOnce } from "./runner";
import { suiteSoftware } from "./software";

export const exitCodes = { ok: 0, failed: 1, notVerified: 2, notRunning: 3 } as const;

/** A connector that has no result, and why. */
export interface Absence {
  system: string;
  reason: string;
}

/** Collects exit codes: with several causes the lowest that is not zero counts (section 3.6). */
export class ExitCode {
  #codes = new Set<number>();
  add(code: number): void {
    if (code !== 0) this.#codes.add(code);
  }
  get value(): number {
    return this.#codes.size === 0 ? 0 : Math.min(...this.#codes);
  }
}

/** The test cases that are asked for; keys without a test case are told as `n/a`. */
export async function chooseCases(
  config: Config,
  test: string,
): Promise<{ cases: FoundTestCase[]; absent: Absence[] }> {
  const all = await testCasesOf(test);
  if (!config.connectors) return { cases: all, absent: [] };
  const cases = config.connectors.flatMap((key) => all.find(({ testCase }) => testCase.system === key) ?? []);
  const missing = config.connectors.filter((key) => !cases.some(({ testCase }) => testCase.system === key));
  return { cases, absent: missing.map((system) => ({ system, reason: `n/a: no test case of ${test}` })) };
}

export async function bench(config: Config, test: string, session: Session): Promise<number> {
  const { cases, absent } = await chooseCases(config, test);
  for (const { system, reason } of absent) session.say(`${system}: ${reason}`);
  if (cases.length === 0) throw new UsageError(`nothing to run: no chosen connector has the test ${test}`);
  // Before the first run, not after the last one.
  ensureDirectory(config.runsDir);
  warnOfSettings(config, session);
  if (config.loadGenerator === "native") {
    session.say("native load generator: an experiment of its own, not to be mixed with other results");
  }
  const hardware = fingerprint(session.workDirectory);
  const busyAtStart = await sessionUntilIdle(config, session);
  const exit = new ExitCode();
  const files: RunFile[] = [];
  for (const block of planOf(config, cases)) {
    const key = block.found.testCase.system;
    if (absent.some(({ system }) => system === key)) continue;
    try {
      await runBlock(config, test, session, { hardware, busyAtStart }, block, (file) => {
        files.push(file);
        if (file.results.some(({ res }) => res.verify.ran && !res.verify.ok)) exit.add(exitCodes.notVerified);
      });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      absent.push({ system: key, reason });
      const kind =
        error instanceof NotRunning ? "not running: " : error instanceof NotNative ? "n/a: " : "failed: ";
      session.say(`${key}: ${kind}${reason}`);
      if (error instanceof NotNative) continue;
      if (error instanceof NotRunning) exit.add(config.connectors ? exitCodes.notRunning : exitCodes.ok);
      else exit.add(exitCodes.failed);
      if (!(error instanceof NotRunning) && !config.keepGoing) break;
    }
  }
  if (files.length > 0) await writeReports(config.runsDir, test, files, absent, session.say);
  return exit.value;
}

function warnOfSettings(config: Config, session: Session): void {
  if (config.accounts > 100_000) {
    session.say(
      "warning: the published suite uses another distribution beyond 100,000 accounts: do not compare",
    );
  }
  for (const alpha of config.alphas) {
    if (alpha > 3) session.say(`warning: at alpha ${alpha} most pairs are of one account and are skipped`);
  }
}

interface Machine {
  hardware: Hardware;
  /** What was wrong when the invocation was told to start all the same. */
  busyAtStart: string | undefined;
}

async function runBlock(
  config: Config,
  test: string,
  session: Session,
  machine: Machine,
  block: Block,
  onFile: (file: RunFile) => void,
): Promise<void> {
  const { found, run } = block;
  const key = found.testCase.system;
  const definition = await loadConnector(key);
  if (config.loadGenerator === "native") requireNativeTarget(definition);
  const prepared = await definition.prepare(session.context(config, test));
  try {
    const rttMs = await roundTripMilliseconds(prepared.url);
    for (const [index, load] of block.loads.entries()) {
      if (index > 0 && config.prepBetweenAlphas) await prepared.reseed();
      const startedAt = new Date();
      const file = await runLoad(config, test, session, {
        block,
        load,
        definition,
        prepared,
        machine,
        startedAt,
        rttMs,
      });
      onFile(file);
      const path = writeJson(config.runsDir, fileNameOf(file), file);
      session.say(`Wrote results to ${path}`);
      session.say(`${key} alpha=${load.alpha} run ${run}/${config.runs} done`);
    }
  } finally {
    await prepared.stop();
  }
}

interface LoadOfBlock {
  block: Block;
  load: Load;
  definition: ConnectorDefinition;
  prepared: Prepared;
  machine: Machine;
  startedAt: Date;
  rttMs: number | null;
}

async function runLoad(config: Config, test: string, session: Session, what: LoadOfBlock): Promise<RunFile> {
  const { block, load, definition, prepared, machine, startedAt, rttMs } = what;
  const { testCase, file } = block.found;
  const progress = progressPrinter(testCase.system, config.seconds);
  const native = config.loadGenerator === "native" ? nativeTargetOf(config, definition, prepared) : undefined;
  const common = {
    config,
    alpha: load.alpha,
    concurrency: load.concurrency,
    inFlight: load.inFlight,
    connect: () => definition.create(config, prepared),
    serverProcesses: prepared.serverProcesses,
    ...(prepared.dataDirectory !== undefined && { dataDirectory: prepared.dataDirectory }),
    say: session.say,
    onPoint: progress.point,
  };
  const run = native
    ? runNative({ ...common, system: testCase.system, target: native })
    : runOnce({ ...common, testCase, ...(prepared.crash && { crash: prepared.crash }) });
  const res = await run.finally(() => progress.end());
  const machineBusy = busyReason(machine.busyAtStart, [res.cpu]);
  if (machineBusy !== undefined) session.say(`this run is not to be published: ${machineBusy}`);
  const { seconds, accounts } = config;
  const { alpha, concurrency } = load;
  return {
    schemaVersion: 1,
    ...(native && { load_generator: "native" }),
    test,
    seconds,
    concurrency,
    accounts,
    alpha,
    run: block.run,
    runs: config.runs,
    tag: config.tag,
    startedAt: startedAt.toISOString(),
    ...(machineBusy !== undefined && { machineBusy }),
    config: {
      ...configOfFile(config),
      ...(load.inFlight !== undefined && { benchPipelined: true, maxInflightPerWorker: load.inFlight }),
    },
    fairness: {
      ...prepared.fairness,
      ...(native && { clientLanguage: "Rust (native load generator)" }),
      ...(native?.roundTripsPerTx !== undefined && { roundTripsPerTx: native.roundTripsPerTx }),
      pipelined: load.inFlight !== undefined,
      inflight: load.inFlight ?? 1,
      rttMs,
    },
    software: { ...suiteSoftware(), ...prepared.software },
    hardware: machine.hardware,
    results: [
      {
        system: testCase.system,
        label: testCase.label ?? file,
        file,
        seconds,
        concurrency,
        accounts,
        alpha,
        res,
      },
    ],
  };
}
