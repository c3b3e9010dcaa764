// The machine that a result was measured on (section 6.2).

import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";
import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os";
import { join } from "node:path";
import { readKernelFile as read } from "./machine";
import type { Hardware } from "./result";

const syncProbes = 200;
const syncBytes = 4096;

export function fingerprint(dataDirectory: string): Hardware {
  const cpuinfo = read("/proc/cpuinfo") ?? "";
  const values = (name: string) =>
    [...cpuinfo.matchAll(new RegExp(`^${name}\\s*: (.*)$`, "gm"))].map((match) => match[1]!);
  const sockets = new Set(values("physical id")).size || null;
  const coresPerSocket = Number(values("cpu cores")[0] ?? 0);
  const maxKhz = read("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  const currentMhz = Number(values("cpu MHz")[0] ?? 0);
  const mount = mountOf(dataDirectory);
  const sync = syncProbe(dataDirectory);
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    sockets,
    physicalCores: sockets && coresPerSocket ? sockets * coresPerSocket : null,
    hardwareThreads: availableParallelism(),
    maxMhz: maxKhz ? Number(maxKhz) / 1000 : currentMhz || null,
    ramBytes: totalmem(),
    kernel: release(),
    distribution: /^PRETTY_NAME="(.*)"$/m.exec(read("/etc/os-release") ?? "")?.[1] ?? "unknown",
    virtualization: virtualization(cpuinfo),
    fileSystem: mount.type,
    blockDevice: mount.device,
    ...sync,
    governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")?.trim() ?? null,
    loadAverage1: loadavg()[0] ?? 0,
  };
}

function virtualization(cpuinfo: string): string {
  const inContainer =
    read("/.dockerenv") !== undefined || /docker|containerd|lxc/.test(read("/proc/1/cgroup") ?? "");
  const hints = [inContainer ? "container" : "", /\bhypervisor\b/.test(cpuinfo) ? "virtual machine" : ""];
  return hints.filter(Boolean).join(" in a ") || "none seen";
}

function mountOf(directory: string): { type: string; device: string } {
  let best = { type: "unknown", device: "unknown", path: "" };
  for (const line of (read("/proc/self/mounts") ?? "").split("\n")) {
    const [device, path, type] = line.split(" ");
    if (!device || !path || !type) continue;
    const isAbove = path === "/" || directory === path || directory.startsWith(`${path}/`);
    if (isAbove && path.length >= best.path.length) best = { type, device, path };
  }
  return { type: best.type, device: best.device };
}

/** How long a sync of 4 KiB appended takes in this directory, in microseconds. */
function syncProbe(directory: string): { fdatasync_p50_us: number; fdatasync_p99_us: number } {
  const path = join(directory, `.sync-probe-${process.pid}`);
  const file = openSync(path, "w");
  const block = Buffer.alloc(syncBytes, 1);
  const times: number[] = [];
  try {
    for (let i = 0; i < syncProbes; i++) {
      const start = process.hrtime.bigint();
      writeSync(file, block);
      fdatasyncSync(file);
      times.push(Number(process.hrtime.bigint() - start) / 1000);
    }
  } finally {
    closeSync(file);
    rmSync(path, { force: true });
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => Math.round(times[Math.floor(share * (times.length - 1))]! * 10) / 10;
  return { fdatasync_p50_us: at(0.5), fdatasync_p99_us: at(0.99) };
}
