// Services that outlive a command: a process in the background prepares connectors and keeps what it started, until it is
// told to stop. `prep` and `services start` start it; its state is a file below .data/pids.

import { spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type Config, UsageError } from "../config";
import { NotRunning } from "../connectors/connector";
import type { Prepared } from "../connectors/definition";
import { parseCommandLine } from "../opts";
import { casesOf, loadConnector } from "../tests/find";
import { nodeCommand } from "./backing";
import { packageDirectory } from "./commands";
import { isAlive, sleep } from "./processes";
import { openSession, say } from "./session";

export interface ServicesState {
  /** The process in the background. */
  pid: number;
  test: string;
  isReady: boolean;
  ready: Record<string, { url: string; processes: number[] | null }>;
  failed: Record<string, { reason: string; isNotRunning: boolean }>;
}

const dataDirectory = () => process.env["BENCH_DATA_DIR"] ?? join(packageDirectory, ".data");
const stateFile = () => join(dataDirectory(), "pids", "services.json");
const logFile = () => join(dataDirectory(), "services.log");

/** The variables that leave a system out of `prep` (section 3.5). */
const skipVariables: Record<string, string[]> = {
  SKIP_PG: ["postgres_rpc", "postgres_sproc_rpc", "postgres_direct"],
  SKIP_CRDB: ["cockroach_rpc"],
  SKIP_PLANETSCALE_PG: ["planetscale_pg_rpc"],
  SKIP_SQLITE: ["sqlite_rpc", "sqlite_batched_rpc"],
  SKIP_SUPABASE: ["supabase_rpc"],
  SKIP_BUN: ["bun"],
  SKIP_CONVEX: ["convex"],
};

/** The connectors that `prep` prepares: those that are asked for, or all that are not skipped. */
export function preparedKeys(config: Config, environment: NodeJS.ProcessEnv): string[] {
  if (config.connectors) return config.connectors;
  const skipped = Object.entries(skipVariables).flatMap(([name, keys]) =>
    environment[name] === "1" ? keys : [],
  );
  // A second server is not the suite's.
  const keys = casesOf("test-1").map(({ system }) => system);
  return keys.filter((key) => key !== "spacetimedb_ref" && !skipped.includes(key));
}

/** What runs in the background now; undefined if nothing does. */
export function servicesState(): ServicesState | undefined {
  if (!existsSync(stateFile())) return undefined;
  const state = JSON.parse(readFileSync(stateFile(), "utf8")) as ServicesState;
  if (isAlive(state.pid)) return state;
  // It died without saying so.
  rmSync(stateFile(), { force: true });
  return undefined;
}

function write(state: ServicesState): void {
  mkdirSync(join(dataDirectory(), "pids"), { recursive: true });
  // Another process reads it all the time: it must never see half of one.
  const next = `${stateFile()}.next`;
  writeFileSync(next, `${JSON.stringify(state, null, 2)}\n`);
  renameSync(next, stateFile());
}

/** The process in the background: prepares, writes its state, and waits for SIGTERM. */
export async function hostServices(flags: readonly string[]): Promise<void> {
  const commandLine = parseCommandLine("prep", flags, process.env);
  if (!commandLine) return;
  const { config, test } = commandLine;
  const session = openSession();
  const state: ServicesState = { pid: process.pid, test, isReady: false, ready: {}, failed: {} };
  const prepared: Prepared[] = [];
  let isStopping = false;
  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    for (const one of prepared.reverse()) await one.stop().catch((error: unknown) => console.error(error));
    rmSync(stateFile(), { force: true });
    process.exit(0);
  };
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.removeAllListeners(signal);
    process.on(signal, () => void stop());
  }
  write(state);
  for (const key of preparedKeys(config, process.env)) {
    session.say(`preparing ${key}`);
    try {
      const definition = await loadConnector(key, test);
      const one = await definition.prepare({ ...session.context(config, test), asService: true });
      prepared.push(one);
      state.ready[key] = { url: one.url, processes: one.processes() };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      state.failed[key] = { reason, isNotRunning: error instanceof NotRunning };
      session.say(`${key}: ${reason}`);
      if (config.connectors && !config.keepGoing) break;
    }
    write(state);
  }
  state.isReady = true;
  write(state);
  // Until a signal comes.
  await new Promise(() => setInterval(() => undefined, 1 << 30));
}

/** Starts the background process with these flags, shows what it says, and waits until all is prepared. */
async function startServices(flags: readonly string[]): Promise<ServicesState> {
  if (servicesState()) {
    say("stopping the services that run already");
    await stopServices();
  }
  mkdirSync(dataDirectory(), { recursive: true });
  const log = openSync(logFile(), "w");
  const [command, ...args] = nodeCommand("src/init/services-cli.ts", "host", ...flags);
  const child = spawn(command!, args, {
    ...{ cwd: packageDirectory, detached: true },
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  child.unref();
  let exitCode: number | null | undefined;
  child.once("exit", (code) => (exitCode = code));
  let shown = 0;
  for (;;) {
    const output = readFileSync(logFile(), "utf8");
    const end = output.lastIndexOf("\n") + 1;
    if (end > shown) process.stdout.write(output.slice(shown, end));
    shown = Math.max(shown, end);
    const state = servicesState();
    if (state?.isReady) return state;
    if (exitCode !== undefined)
      throw new Error(`the services did not start; ${logFile()} has all of their output`);
    await sleep(100);
  }
}

/** 0, or 1 if something failed that was asked for, or 3 if it is a service that the suite cannot start. */
function exitCodeOf(state: ServicesState, wasAskedFor: boolean): number {
  const failures = Object.values(state.failed).filter(({ isNotRunning }) => wasAskedFor || !isNotRunning);
  if (failures.some(({ isNotRunning }) => !isNotRunning)) return 1;
  return failures.length > 0 ? 3 : 0;
}

/** Starts the services that connectors need, publishes modules, seeds. */
export async function prepareServices(flags: readonly string[]): Promise<number> {
  // Bad flags are told here, not in the log of the background process.
  const commandLine = parseCommandLine("prep", flags, process.env);
  if (!commandLine) return 0;
  const { config } = commandLine;
  if (config.useDocker)
    throw new UsageError("--use-docker: this suite starts its services as processes, without Docker");
  const state = await startServices(flags);
  for (const [key, { url }] of Object.entries(state.ready)) say(`${key} is ready at ${url}`);
  for (const [key, { reason }] of Object.entries(state.failed))
    say(`${key} is not: ${reason.split("\n")[0]}`);
  say("`pnpm run services stop` ends them");
  return config.keepGoing ? 0 : exitCodeOf(state, config.connectors !== undefined);
}

const stopMilliseconds = 30_000;

/** Stops what runs in the background; false if nothing did. */
export async function stopServices(): Promise<boolean> {
  const state = servicesState();
  if (!state) return false;
  process.kill(state.pid, "SIGTERM");
  const deadline = Date.now() + stopMilliseconds;
  while (servicesState()) {
    if (Date.now() > deadline) {
      throw new Error(
        `process ${state.pid} did not stop within ${stopMilliseconds / 1000} s; ${logFile()} says why`,
      );
    }
    await sleep(50);
  }
  return true;
}
