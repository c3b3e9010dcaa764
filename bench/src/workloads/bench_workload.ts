// `bench` for the tests other than test-1: prepares each connector, repeats its runs with fresh data, writes a file per
// run and the table (section 14).

import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import { type Config, UsageError } from "../config";
import type { Connector, ConnectorDefinition } from "../connectors/connector";
import { NotRunning } from "../connectors/connector";
import { loadConnector } from "../connectors/registry";
import { type Absence, ExitCode, exitCodes } from "../core/bench";
import { type Clock, realClock } from "../core/clock";
import { CpuAccount, type CpuReport } from "../core/cpu";
import { fingerprint, type Hardware } from "../core/hardware";
import { sessionUntilIdle } from "../core/idle";
import { busyReason, configOfFile, timestamp, writeJson } from "../core/results";
import { suiteSoftware } from "../core/software";
import type { Prepared } from "../init/prepare";
import type { Session } from "../init/session";
import { progressPrinter } from "../report/progress";
import { workloadPage } from "../report/workload_page";
import { drive } from "./drive";
import { Measurement } from "./measurement";
import { combined, type SampleResult, sampleResult, type WorkloadFile, workloadMarkdown } from "./results";
import type { RunNamed, Workload, WorkloadCase, WorkloadRun } from "./workload";

/** Distinct errors that are printed; the file has more. */
const shownErrorsMax = 3;

const testsDirectory = join(import.meta.dirname, "..", "tests");

/** Tests that stand for several, in the order in which they are run. */
const suites: Record<string, string[]> = {
  ycsb: ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-f", "ycsb-d", "ycsb-e"],
};

const directoryOf = (test: string) => join(testsDirectory, test);

/** Whether a test is one of this kind: its directory has a workload. */
export const isWorkload = (test: string): boolean =>
  Object.hasOwn(suites, test) ||
  (/^[a-z0-9-]+$/.test(test) && existsSync(join(directoryOf(test), "_workload.ts")));

interface FoundCase {
  workloadCase: WorkloadCase;
  file: string;
}

async function load<T>(test: string, file: string, name: string): Promise<T> {
  const module = (await import(pathToFileURL(join(directoryOf(test), file)).href)) as Record<string, unknown>;
  if (!module[name]) throw new Error(`${join(directoryOf(test), file)} does not export ${name}`);
  return module[name] as T;
}

async function casesOf(test: string): Promise<FoundCase[]> {
  const files = readdirSync(directoryOf(test)).filter(
    (name) => name.endsWith(".ts") && !name.startsWith("_"),
  );
  return Promise.all(
    files.map(async (file) => ({ file, workloadCase: await load<WorkloadCase>(test, file, "default") })),
  );
}

export async function benchWorkload(config: Config, test: string, session: Session): Promise<number> {
  const exit = new ExitCode();
  const files: WorkloadFile[] = [];
  const absent: Absence[] = [];
  const hardware = fingerprint(session.workDirectory);
  let idle: Promise<string | undefined> | undefined;
  let casesChosen = 0;
  for (const name of suites[test] ?? [test]) {
    const workload = await load<Workload>(name, "_workload.ts", "workload");
    const cases = await casesOf(name);
    for (const key of config.connectors ?? []) {
      if (cases.some(({ workloadCase }) => workloadCase.system === key)) continue;
      absent.push({ system: key, reason: `n/a: no test case of ${name}` });
      session.say(`${key}: n/a: no test case of ${name}`);
    }
    const chosen = config.connectors
      ? config.connectors.flatMap((key) => cases.filter(({ workloadCase }) => workloadCase.system === key))
      : cases.filter(({ workloadCase }) => !workloadCase.isOptional);
    casesChosen += chosen.length;
    for (const found of chosen) {
      idle ??= sessionUntilIdle(config, session);
      const busyAtStart = await idle;
      try {
        const settings = { ...config, ...workload.settings?.(config) };
        await benchCase({ config: settings, workload, found, session, hardware, busyAtStart }, (file) => {
          files.push(file);
          if (file.results.some(({ res }) => res.repetitions.each.some(({ verify }) => !verify.ok))) {
            exit.add(exitCodes.notVerified);
          }
        });
      } catch (error) {
        const system = found.workloadCase.system;
        // Some errors of drivers have a name only.
        const reason = error instanceof Error && error.message !== "" ? error.message : String(error);
        const isNotRunning = error instanceof NotRunning;
        absent.push({ system, reason });
        session.say(`${system}: ${isNotRunning ? "not running" : "failed"}: ${reason}`);
        if (!isNotRunning) exit.add(exitCodes.failed);
        else if (config.connectors) exit.add(exitCodes.notRunning);
        if (!isNotRunning && !config.keepGoing) return finish(config, files, absent, session, exit);
      }
    }
  }
  if (casesChosen === 0) throw new UsageError(`nothing to run: no chosen connector has the test ${test}`);
  return finish(config, files, absent, session, exit);
}

function finish(
  config: Config,
  files: readonly WorkloadFile[],
  absent: readonly Absence[],
  session: Session,
  exit: ExitCode,
): number {
  if (files.length > 0) {
    const markdown = workloadMarkdown(files, absent);
    console.log(`\n${markdown}`);
    mkdirSync(config.runsDir, { recursive: true });
    const at = timestamp(new Date());
    const path = join(config.runsDir, `summary-${at}.md`);
    writeFileSync(path, markdown);
    const page = join(config.runsDir, `report-${at}.html`);
    writeFileSync(page, workloadPage(files, absent));
    session.say(`Wrote the tables to ${path}, and a page with charts to ${page}`);
  }
  return exit.value;
}

interface CaseOptions {
  config: Config;
  workload: Workload;
  found: FoundCase;
  session: Session;
  hardware: Hardware;
  busyAtStart: string | undefined;
}

async function benchCase(options: CaseOptions, onFile: (file: WorkloadFile) => void): Promise<void> {
  const { config, workload, found, session } = options;
  const { system, definition: own } = found.workloadCase;
  const definition = own ?? (await loadConnector(system));
  const prepared = await definition.prepare(session.context(config, workload.name));
  try {
    for (let run = 1; run <= config.runs; run++) {
      for (const { label, create } of workload.runs(config)) {
        const startedAt = new Date();
        const samples: SampleResult[] = [];
        const count = config.samples ?? workload.samples;
        let last: WorkloadRun | undefined;
        for (let sample = 1; sample <= count; sample++) {
          last = create();
          session.say(`${system} ${workload.name} ${label}: ${sample} of ${count}`);
          samples.push(await runSample(options, definition, prepared, last));
        }
        const file = fileOf(options, prepared, last!, samples, startedAt, run);
        const name = `${workload.name}-${system}-${timestamp(startedAt)}.json`;
        session.say(`Wrote results to ${writeJson(config.runsDir, name, file)}`);
        onFile(file);
      }
    }
  } finally {
    await prepared.stop();
  }
}

/** Operations in flight per worker. */
const inFlightOf = (config: Config): number => config.maxInflightPerWorker ?? 1;

/** Loading may take much longer than an operation of the run. */
const loadOperation =
  (workloadCase: WorkloadCase): RunNamed =>
  (connection, kind, args = {}) => {
    const run = workloadCase.ops[kind];
    if (!run) throw new Error(`${workloadCase.system} has no operation ${kind}`);
    return run(connection, args);
  };

async function runSample(
  { config, found, session }: CaseOptions,
  definition: ConnectorDefinition,
  prepared: Prepared,
  run: WorkloadRun,
): Promise<SampleResult> {
  const { workloadCase } = found;
  const named = loadOperation(workloadCase);
  const clock: Clock = realClock;
  const root = definition.create(config, prepared);
  const workers: Connector[] = [];
  await root.open(run.concurrency);
  try {
    const load = await run.load(root, named);
    if (load) session.say(`loaded ${load.rows} rows, ${Math.round(load.rows_per_s)} per second`);
    for (let index = 0; index < run.concurrency; index++) {
      workers.push(root.createWorker ? await root.createWorker({ index, total: run.concurrency }) : root);
    }
    const { limit } = run;
    const warmupSec = limit.mode === "time" ? limit.warmupSec : 0;
    const cpu = config.cpuAccounting
      ? new CpuAccount(
          prepared.serverProcesses,
          prepared.dataDirectory,
          () => performance.eventLoopUtilization().idle,
          () => clock.now(),
        )
      : undefined;
    const progress = progressPrinter(workloadCase.system, limit.mode === "time" ? limit.seconds : 0);
    let hasStarted = false;
    const measurement: Measurement = new Measurement({
      clock,
      workers,
      ops: workloadCase.ops,
      ...(limit.mode === "time" && { seconds: limit.seconds }),
      warmupSec,
      opTimeoutMs: config.opTimeoutMs,
      minOpTimeoutMs: config.minOpTimeoutMs,
      tailSlackMs: config.tailSlackMs,
      ...(config.logErrors && { logError: (message: string) => session.say(`failed: ${message}`) }),
      onInterval: (point) => {
        if (point) {
          cpu?.sample(point.tSec >= warmupSec, point.samples);
          progress.point(point);
        } else if (!hasStarted) {
          cpu?.sample(warmupSec === 0, 0);
        } else if (limit.mode !== "time" || measurement.timeSeries.length === 0) {
          // A run that ends by itself is measured to its end.
          cpu?.sample(true, measurement.partialPoint.samples);
        }
        hasStarted = true;
      },
    });
    const generators = workers.map((_, worker) => run.generator(worker, workers.length));
    await measurement.measure(() =>
      run.drive
        ? run.drive(measurement, workers.length)
        : drive({ clock, measurement, limit, generators, inFlight: inFlightOf(config), rate: config.rate }),
    );
    progress.end();
    const report: CpuReport | null = cpu?.report() ?? null;
    const verdict = config.verifyTransactions
      ? await run.verify(root, named, measurement).catch((error: unknown) => ({
          ok: false,
          message: error instanceof Error ? error.message : String(error),
        }))
      : undefined;
    if (verdict) session.say(`Verification ${verdict.ok ? "passed" : "failed"}: ${verdict.message}`);
    for (const [message, count] of [...measurement.errorSamples].slice(0, shownErrorsMax)) {
      session.say(`failed ${count} times: ${message}`);
    }
    if (run.closingLine) console.log(run.closingLine(measurement));
    return sampleResult({
      measurement,
      warmupSec,
      load,
      verdict,
      cpu: report,
      successes: run.successes?.(measurement) ?? measurement.samples,
      extras: run.extras?.(measurement) ?? {},
    });
  } finally {
    for (const worker of workers) if (worker !== root) await worker.close().catch(() => undefined);
    await root.close();
  }
}

function fileOf(
  { config, workload, found, hardware, busyAtStart }: CaseOptions,
  prepared: Prepared,
  run: WorkloadRun,
  samples: readonly SampleResult[],
  startedAt: Date,
  number: number,
): WorkloadFile {
  const { system, label } = found.workloadCase;
  const seconds = run.limit.mode === "time" ? run.limit.seconds : 0;
  const inflight = inFlightOf(config);
  const machineBusy = busyReason(
    busyAtStart,
    samples.map(({ cpu }) => cpu),
  );
  return {
    schemaVersion: 1,
    test: workload.name,
    seconds,
    concurrency: run.concurrency,
    accounts: 0,
    alpha: null,
    run: number,
    runs: config.runs,
    tag: config.tag,
    startedAt: startedAt.toISOString(),
    ...(machineBusy !== undefined && { machineBusy }),
    config: configOfFile(config),
    fairness: { ...prepared.fairness, pipelined: inflight > 1, inflight },
    software: { ...suiteSoftware(), ...prepared.software },
    hardware,
    results: [
      {
        system,
        label: label ?? system,
        file: found.file,
        seconds,
        concurrency: run.concurrency,
        accounts: 0,
        alpha: null,
        parameters: run.parameters,
        res: combined(samples),
      },
    ],
  };
}
