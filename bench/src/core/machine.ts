// What the whole machine does beside a run: the block device below the data, and processors that others use.

import { readFileSync, statSync } from "node:fs";

/** What a sector of `/sys/.../stat` is, whatever the device's own size. */
const sectorBytes = 512;
/** `sysconf(_SC_CLK_TCK)`, which is 100 on every Linux that Node runs on. */
export const ticksPerSecond = 100;

/** A file of the kernel; undefined where there is none, e.g. of a process that has ended. */
export const readKernelFile = (path: string): string | undefined => {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
};

/** `8:1` for the device of a directory. The kernel spreads both numbers over the value. */
export function deviceNumber(dev: bigint): string {
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
  const minor = (dev & 0xffn) | ((dev >> 12n) & ~0xffn);
  return `${major}:${minor}`;
}

/** The sectors written, field 7 of the kernel's statistics of a block device. */
export function parseSectorsWritten(text: string): number | null {
  const value = Number(text.trim().split(/\s+/)[6]);
  return Number.isSafeInteger(value) ? value : null;
}

/**
 * Bytes that the block device below a directory has written since the start of the machine, by any program; null
 * where there is no such device (memory, overlays, other systems). `/proc/<pid>/io` is no substitute: it counts whole
 * folios that were made dirty, many times what reaches the device.
 */
export function deviceWrittenBytes(directory: string | undefined): number | null {
  if (directory === undefined) return null;
  try {
    const { dev } = statSync(directory, { bigint: true });
    const sectors = parseSectorsWritten(readKernelFile(`/sys/dev/block/${deviceNumber(dev)}/stat`) ?? "");
    return sectors === null ? null : sectors * sectorBytes;
  } catch {
    return null;
  }
}

/** Processor time that programs of this machine have used (user, nice, system), in seconds; null where unknown. */
export function machineCpuSeconds(): number | null {
  const fields = /^cpu\s+(.*)$/m
    .exec(readKernelFile("/proc/stat") ?? "")?.[1]
    ?.trim()
    .split(/\s+/)
    .map(Number);
  if (!fields || fields.length < 3) return null;
  return (fields[0]! + fields[1]! + fields[2]!) / ticksPerSecond;
}
