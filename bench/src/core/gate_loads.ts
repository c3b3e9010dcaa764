// What the gate loads a server with: native programs, so that no client in JavaScript is the limit.

import { dirname, join } from "node:path";
import { UsageError } from "../config";
import type { NativeTarget, Prepared } from "../connectors/definition";
import { runCommand } from "../init/commands";

/** One run of one side. */
export interface GateRun {
  /** Of the server's processors, for one operation: a transfer, or a message for one recipient. */
  cpuMicroseconds: number;
  operationsPerSecond: number;
  /** Of transfers. */
  p50Milliseconds?: number;
}

export interface GateLoad {
  name: string;
  program: "transfers" | "fanout";
  /** Beside what says where the server is and for how long it is loaded. */
  arguments: string[];
}

const transfers = (connections: number, inFlight: number): GateLoad => ({
  name: `${connections}x${inFlight}`,
  program: "transfers",
  arguments: ["--connections", String(connections), "--in-flight", String(inFlight), "--alpha", "1.5"],
});

/** Messages that each go to ten of 1,000 subscribers with a socket each. */
const fanout = (shape: string, underWay: number): GateLoad => ({
  name: `${shape}-${underWay}`,
  program: "fanout",
  arguments: [
    "--shape",
    shape,
    "--under-way",
    String(underWay),
    "--messages",
    underWay === 1 ? "1500" : "5000",
  ],
});

/** Connections × calls under way on each; then what subscribers ask for, and messages under way. */
export const gateLoads: readonly GateLoad[] = [
  ...[transfers(64, 40), transfers(64, 1), transfers(1, 1)],
  ...[fanout("room", 64), fanout("room", 1), fanout("join", 64)],
];

/** The module that the loads of `fanout` need, and the name of its database. */
export const fanoutModule = { path: "../modules/fanout-rs", database: "gate-fanout" };

/** All of them, if none are named. */
export function loadsNamed(names: readonly string[] | undefined): readonly GateLoad[] {
  return (
    names?.map((name) => {
      const found = gateLoads.find((load) => load.name === name);
      if (found) return found;
      const all = gateLoads.map((load) => load.name).join(", ");
      throw new UsageError(`--loads: there is no ${name}; there are ${all}`);
    }) ?? gateLoads
  );
}

/** The report of crates/loadgen, as far as it is used here. */
interface Report {
  transfers_per_second: number;
  latency_ms: { p50: number };
  server: { cpu_us_per_transfer: number } | null;
}

export interface RunLoadOptions {
  /** The load generator; the example `live_queries` is in the folder `examples` beside it. */
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
  const [server] = options.prepared.processes() ?? [];
  if (server === undefined) throw new Error("the gate starts its servers itself");
  return options.load.program === "fanout" ? runFanout(options, server) : runTransfers(options, server);
}

/** The report of the example `live_queries` of crates/loadgen, as far as it is used here. */
interface FanoutReport {
  cpu_us_per_recipient: number;
  messages_per_second: number;
}

async function runFanout({ program, target, load }: RunLoadOptions, server: number): Promise<GateRun> {
  const output = await runCommand(join(dirname(program), "examples/live_queries"), [
    ...["--url", target.url, "--database", fanoutModule.database, "--server-pid", String(server)],
    ...["--case", "fanout", "--subscribers", "1000", "--json", ...load.arguments],
  ]);
  const report = JSON.parse(output) as FanoutReport;
  return {
    cpuMicroseconds: report.cpu_us_per_recipient,
    operationsPerSecond: report.messages_per_second,
  };
}

async function runTransfers(options: RunLoadOptions, server: number): Promise<GateRun> {
  const { program, target, load, seconds, accounts } = options;
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
