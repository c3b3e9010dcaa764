// What the whole machine does beside a run, and which runs are not to be published.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  deviceNumber,
  deviceWrittenBytes,
  machineCpuSeconds,
  parseSectorsWritten,
} from "../src/core/machine";
import type { CpuReport } from "../src/core/result";
import { busyReason, failureShare } from "../src/core/results";
import { idleRuns } from "../src/report/plot";
import { runFile } from "./support/run_file";

describe("the block device", () => {
  it("is named by two numbers, which the kernel spreads over one", () => {
    expect(deviceNumber(0x801n)).toBe("8:1");
    expect(deviceNumber(0xfe00n)).toBe("254:0");
    // Minor numbers above 255 stand above the major one: 259:258.
    expect(deviceNumber(0x110302n)).toBe("259:258");
  });

  it("says how many sectors it has written", () => {
    expect(parseSectorsWritten("  1  2  3  4  5  6  4096  8\n")).toBe(4096);
    expect(parseSectorsWritten("")).toBeNull();
  });

  it("is not there for memory, nor for what does not exist", () => {
    expect(deviceWrittenBytes("/proc")).toBeNull();
    expect(deviceWrittenBytes("/no/such/directory")).toBeNull();
    expect(deviceWrittenBytes(undefined)).toBeNull();
  });
});

describe("the machine's processors", () => {
  it("have been used by this test at least", () => {
    const before = machineCpuSeconds()!;
    const end = performance.now() + 200;
    while (performance.now() < end);
    expect(machineCpuSeconds()!).toBeGreaterThan(before);
  });
});

describe("a run beside other programs", () => {
  const cpu = (others_share: number | null) => ({ others_share }) as CpuReport;

  it("is marked when they took more than a tenth of the machine, or it was forced to start", () => {
    expect(busyReason(undefined, [cpu(0.05), cpu(null), null])).toBeUndefined();
    expect(busyReason(undefined, [cpu(0.05), cpu(0.11)])).toBe("other programs used 11 % of the machine");
    expect(busyReason("at the start, the load was high", [cpu(0)])).toBe("at the start, the load was high");
  });

  it("is left out of charts", () => {
    const directory = mkdtempSync(join(tmpdir(), "lightcone-bench-busy-"));
    const write = (name: string, file: object) => writeFileSync(join(directory, name), JSON.stringify(file));
    write("a.json", runFile({}));
    write("b.json", { ...runFile({}), machineBusy: "busy" });
    const { runs, busy } = idleRuns([directory]);
    rmSync(directory, { recursive: true });
    expect([runs.length, busy]).toEqual([1, 1]);
  });
});

describe("the share of failures", () => {
  it("counts errors, timeouts and what was never sent", () => {
    expect(failureShare({ samples: 97, errors: 1, timeouts: 1, unsent: 1 })).toBeCloseTo(0.03);
    expect(failureShare({ samples: 0, errors: 0, timeouts: 0, unsent: 0 })).toBe(0);
    expect(failureShare({ samples: 0, errors: 5, timeouts: 0, unsent: 0 })).toBe(1);
  });
});
