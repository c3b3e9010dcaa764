// What the processes of a system use: CPU time and memory, and what the disk below its data writes (section 14.4).

import { readdirSync, readlinkSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { deviceWrittenBytes, machineCpuSeconds, readKernelFile, ticksPerSecond } from "./machine";
import type { CpuReport, RoleUsage } from "./result";

export interface Usage {
  cpuSeconds: number;
  /** Resident memory: what is the processes' own, and what they share counted once. */
  residentBytes: number;
}

interface ProcessStat {
  pid: number;
  parent: number;
  cpuTicks: number;
}

function statOf(pid: number): ProcessStat | undefined {
  const text = readKernelFile(`/proc/${pid}/stat`);
  if (!text) return undefined;
  // The name, in brackets, may have blanks.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  // utime, stime, and those of children that were waited for: what has ended is not lost.
  const cpuTicks = [11, 12, 13, 14].reduce((sum, field) => sum + Number(fields[field]), 0);
  return { pid, parent: Number(fields[1]), cpuTicks };
}

const processIds = () =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** These processes and everything below them. */
function trees(roots: readonly number[]): ProcessStat[] {
  const all = processIds().flatMap((pid) => statOf(pid) ?? []);
  const found = new Map<number, ProcessStat>();
  const take = (stat: ProcessStat) => {
    if (found.has(stat.pid)) return;
    found.set(stat.pid, stat);
    for (const child of children.get(stat.pid) ?? []) take(child);
  };
  const children = new Map<number, ProcessStat[]>();
  for (const stat of all) children.set(stat.parent, [...(children.get(stat.parent) ?? []), stat]);
  for (const stat of all) if (roots.includes(stat.pid)) take(stat);
  return [...found.values()];
}

function memoryOf(pid: number): { own: number; shared: number } {
  const status = readKernelFile(`/proc/${pid}/status`) ?? "";
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
  return { own: kilobytes("RssAnon") * 1024, shared: (kilobytes("RssShmem") + kilobytes("RssFile")) * 1024 };
}

/** What these processes and their descendants have used until now. */
export function usageOf(roots: readonly number[]): Usage {
  const stats = trees(roots);
  let ownBytes = 0;
  let sharedBytes = 0;
  for (const { pid } of stats) {
    const memory = memoryOf(pid);
    ownBytes += memory.own;
    sharedBytes = Math.max(sharedBytes, memory.shared);
  }
  const cpuSeconds = stats.reduce((sum, stat) => sum + stat.cpuTicks, 0) / ticksPerSecond;
  return { cpuSeconds, residentBytes: ownBytes + sharedBytes };
}

/** The processes that listen on these TCP ports of this machine. */
export function processesListeningOn(...ports: number[]): number[] {
  const wanted = new Set(ports.map((port) => port.toString(16).toUpperCase().padStart(4, "0")));
  const sockets = new Set<string>();
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    for (const line of (readKernelFile(table) ?? "").split("\n").slice(1)) {
      const fields = line.trim().split(/\s+/);
      const isListening = fields[3] === "0A";
      if (isListening && wanted.has(fields[1]?.split(":")[1] ?? "")) sockets.add(`socket:[${fields[9]}]`);
    }
  }
  return processIds().filter((pid) => holdsOneOf(pid, sockets));
}

function holdsOneOf(pid: number, sockets: ReadonlySet<string>): boolean {
  const orNothing = <T>(look: () => T): T | undefined => {
    try {
      return look();
    } catch {
      // It has been closed meanwhile, or the process has ended.
      return undefined;
    }
  };
  const directory = `/proc/${pid}/fd`;
  const descriptors = orNothing(() => readdirSync(directory)) ?? [];
  return descriptors.some((fd) => sockets.has(orNothing(() => readlinkSync(`${directory}/${fd}`)) ?? ""));
}

/** Bytes that the files below a directory take on disk. */
export function directoryBytes(directory: string): number {
  let bytes = 0;
  const pending = [directory];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    try {
      for (const entry of readdirSync(next, { withFileTypes: true })) {
        const path = join(next, entry.name);
        if (entry.isDirectory()) pending.push(path);
        else if (entry.isFile()) bytes += statSync(path).blocks * 512;
      }
    } catch {
      // It was removed meanwhile: logs and snapshots come and go.
    }
  }
  return bytes;
}

/** Below this share of idle time the client is the limit (section 12). */
const idleShareLeast = 0.2;

/** Above this share of the machine that others use, a run was not alone (section 12). */
export const othersShareMost = 0.1;

interface Sample {
  at: number;
  machineCpuSeconds: number | null;
  deviceBytes: number | null;
  server: Usage | null;
  client: Usage;
  idleMs: number;
  samples: number;
}

/** Takes samples during a run and adds up those of the steady window. */
export class CpuAccount {
  readonly #samples: Sample[] = [];
  #isSteady = false;

  constructor(
    private readonly serverProcesses: readonly number[] | null,
    private readonly dataDirectory: string | undefined,
    private readonly idleMilliseconds: () => number,
    private readonly now: () => number,
    private readonly clientUsage: () => Usage = ownUsage,
  ) {
    this.#bytesBefore = dataDirectory === undefined ? null : directoryBytes(dataDirectory);
  }

  readonly #bytesBefore: number | null;

  /** `steadySamples`: what succeeded since the sample before, if that lies in the steady window. */
  sample(isSteady: boolean, steadySamples: number): void {
    const sample = {
      at: this.now(),
      machineCpuSeconds: machineCpuSeconds(),
      deviceBytes: deviceWrittenBytes(this.dataDirectory),
      server: this.serverProcesses && usageOf(this.serverProcesses),
      client: this.clientUsage(),
      idleMs: this.idleMilliseconds(),
      samples: steadySamples,
    };
    // All before the last sample ahead of the steady window is of no interest.
    if (!isSteady && !this.#isSteady) this.#samples.length = 0;
    this.#isSteady ||= isSteady;
    this.#samples.push(sample);
  }

  report(): CpuReport {
    const first = this.#samples[0]!;
    const last = this.#samples.at(-1)!;
    const seconds = Math.max(1e-9, (last.at - first.at) / 1000);
    const successes = this.#samples.slice(1).reduce((sum, sample) => sum + sample.samples, 0);
    const server = first.server && this.#role((sample) => sample.server!, seconds);
    const perCpuSecond = server && server.cpu_s > 0 ? successes / server.cpu_s : null;
    const idleShare = Math.min(1, Math.max(0, (last.idleMs - first.idleMs) / (seconds * 1000)));
    return {
      server,
      client: this.#role((sample) => sample.client, seconds),
      client_idle_share: idleShare,
      client_bound: idleShare < idleShareLeast,
      ops_per_cpu_s: perCpuSecond,
      ops_per_cpu_pct: perCpuSecond === null ? null : perCpuSecond / 100,
      device_written_bytes:
        first.deviceBytes === null || last.deviceBytes === null ? null : last.deviceBytes - first.deviceBytes,
      others_share: othersShare(first, last, seconds),
      data_bytes_before: this.#bytesBefore,
      data_bytes_after: this.dataDirectory === undefined ? null : directoryBytes(this.dataDirectory),
    };
  }

  #role(of: (sample: Sample) => Usage, seconds: number): RoleUsage {
    const first = of(this.#samples[0]!);
    const last = of(this.#samples.at(-1)!);
    const cpu_s = last.cpuSeconds - first.cpuSeconds;
    let peak = 0;
    for (let i = 1; i < this.#samples.length; i++) {
      const milliseconds = this.#samples[i]!.at - this.#samples[i - 1]!.at;
      // A short rest at the end says nothing: CPU time is counted in hundredths of a second.
      if (milliseconds < 500) continue;
      const used = of(this.#samples[i]!).cpuSeconds - of(this.#samples[i - 1]!).cpuSeconds;
      peak = Math.max(peak, (used * 100_000) / milliseconds);
    }
    const average = (cpu_s / seconds) * 100;
    return {
      cpu_s,
      cpu_avg_pct: average,
      cpu_peak_pct: Math.max(peak, average),
      peak_rss_bytes: Math.max(...this.#samples.map((sample) => of(sample).residentBytes)),
    };
  }
}

function othersShare(first: Sample, last: Sample, seconds: number): number | null {
  // A system whose processes are not known may run on this machine all the same, and is not to be taken for others.
  if (first.server === null) return null;
  if (first.machineCpuSeconds === null || last.machineCpuSeconds === null) return null;
  const used = (sample: Sample) => (sample.server?.cpuSeconds ?? 0) + sample.client.cpuSeconds;
  const others = last.machineCpuSeconds - first.machineCpuSeconds - (used(last) - used(first));
  return Math.max(0, others / (seconds * availableParallelism()));
}

function ownUsage(): Usage {
  const { user, system } = process.cpuUsage();
  return {
    cpuSeconds: (user + system) / 1e6,
    residentBytes: process.memoryUsage.rss(),
  };
}
