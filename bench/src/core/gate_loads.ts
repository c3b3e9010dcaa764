// What the gate loads a server with: the native load generator, so that no client in JavaScript is the limit.

import { UsageError } from "../config";
import type { NativeTarget, Prepared } from "../connectors/definition";
import { runCommand } from "../init/commands";

/** One run of one side. */
export interface GateRun {
  /** Of the server's processors, for one operation. */
  cpuMicroseconds: number;
  operationsPerSecond: number;
  p50Milliseconds: number;
}

export interface GateLoad {
  name: string;
  /** Beside what says where the server is and for how long it is loaded. */
  arguments: string[];
}

const transfers = (connections: number, inFlight: number): GateLoad => ({
  name: `${connections}x${inFlight}`,
  arguments: ["--connections", String(connections), "--in-flight", String(inFlight), "--alpha", "1.5"],
});

/** Connections × calls under way on each. */
export const gateLoads: readonly GateLoad[] = [transfers(64, 40), transfers(64, 1), transfers(1, 1)];

export function loadsNamed(names: string): GateLoad[] {
  return names.split(",").map((name) => {
    const found = gateLoads.find((load) => load.name === name);
    if (found) return found;
    throw new UsageError(
      `--loads: there is no ${name}; there are ${gateLoads.map((load) => load.name).join(", ")}`,
    );
  });
}

/** The report of crates/loadgen, as far as it is used here. */
interface Report {
  transfers_per_second: number;
  latency_ms: { p50: number };
  server: { cpu_us_per_transfer: number } | null;
}

export interface RunLoadOptions {
  /** The load generator. */
  program: string;
  target: NativeTarget;
  prepared: Prepared;
  load: GateLoad;
  seconds: number;
  accounts: number;
}

/** Not measured: connections are made and caches filled meanwhile. */
const warmupSeconds = 0.5;

export async function runLoad(options: RunLoadOptions): Promise<GateRun> {
  const { program, target, prepared, load, seconds, accounts } = options;
  const [server] = prepared.serverProcesses ?? [];
  if (server === undefined) throw new Error("the gate starts its servers itself");
  const output = await runCommand(
    program,
    [
      ...["--target", target.kind, ...(target.arguments ?? []), ...load.arguments],
      ...["--accounts", String(accounts), "--seconds", String(seconds)],
      ...["--warmup-seconds", String(warmupSeconds), "--server-pid", String(server)],
      ...["--verify", "--json", "--quiet"],
    ],
    { environment: { LIGHTCONE_LOADGEN_URL: target.url } },
  );
  const report = JSON.parse(output) as Report;
  return {
    cpuMicroseconds: report.server?.cpu_us_per_transfer ?? 0,
    operationsPerSecond: report.transfers_per_second,
    p50Milliseconds: report.latency_ms.p50,
  };
}
