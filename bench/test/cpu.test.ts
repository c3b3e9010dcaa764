// What processes use, read from this machine's /proc (chapter 09, section 14.4).

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CpuAccount, directoryBytes, processesListeningOn, usageOf } from "../src/core/cpu";
import { fingerprint } from "../src/core/hardware";
import { freePort } from "../src/init/processes";

/** Uses CPU for half a second of CPU time in a child of its own, and then waits. */
const burn = `
  const { spawn } = require("node:child_process");
  spawn(process.execPath, ["-e", "while (process.cpuUsage().user < 5e5); console.log('burnt'); setInterval(() => {}, 1e6)"],
    { stdio: "inherit" });
`;

describe("usage of processes", () => {
  it("has the CPU time and the memory of descendants", async () => {
    const child = spawn(process.execPath, ["-e", burn], {
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
    });
    try {
      await new Promise<void>((done) =>
        child.stdout.on("data", (text) => String(text).includes("burnt") && done()),
      );
      const usage = usageOf([child.pid!]);
      expect(usage.cpuSeconds).toBeGreaterThan(0.45);
      expect(usage.residentBytes).toBeGreaterThan(3e7);
    } finally {
      process.kill(-child.pid!, "SIGKILL");
    }
    await new Promise((done) => child.once("close", done));
    expect(usageOf([child.pid!])).toEqual({ cpuSeconds: 0, residentBytes: 0 });
  });

  it("finds who listens on a port", async () => {
    const port = await freePort();
    expect(processesListeningOn(port)).toEqual([]);
    const server = createServer();
    await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
    expect(processesListeningOn(port)).toEqual([process.pid]);
    server.close();
  });

  it("adds up a directory", () => {
    const directory = mkdtempSync(join(tmpdir(), "lightcone-bench-bytes-"));
    writeFileSync(join(directory, "a"), Buffer.alloc(100_000, 1));
    expect(directoryBytes(directory)).toBeGreaterThanOrEqual(100_000);
    expect(directoryBytes(directory)).toBeLessThan(120_000);
    rmSync(directory, { recursive: true });
    expect(directoryBytes(directory)).toBe(0);
  });
});

describe("the account of a run", () => {
  it("leaves the warm-up out, and calls a client without idle time the limit", () => {
    let now = 0;
    let idle = 0;
    const account = new CpuAccount(
      [process.pid],
      undefined,
      () => idle,
      () => now,
    );
    const tick = (isSteady: boolean, samples: number, idleShare: number) => {
      now += 1000;
      idle += 1000 * idleShare;
      account.sample(isSteady, samples);
    };
    account.sample(false, 0);
    tick(false, 1000, 1);
    tick(true, 50, 0.1);
    const spinUntil = process.cpuUsage().user + 100_000;
    while (process.cpuUsage().user < spinUntil);
    tick(true, 50, 0.1);
    const report = account.report();
    expect(report.client_idle_share).toBeCloseTo(0.1, 6);
    expect(report.client_bound).toBe(true);
    expect(report.server!.cpu_s).toBeGreaterThan(0.08);
    expect(report.ops_per_cpu_s).toBeCloseTo(100 / report.server!.cpu_s, 6);
    expect(report.ops_per_cpu_pct).toBeCloseTo(1 / report.server!.cpu_s, 6);
  });

  it("has no server where that is remote", () => {
    const account = new CpuAccount(
      null,
      undefined,
      () => 0,
      () => 0,
    );
    account.sample(true, 0);
    expect(account.report()).toMatchObject({ server: null, ops_per_cpu_s: null, data_bytes_before: null });
    expect(account.report().others_share).toBeNull();
  });
});

describe("the machine", () => {
  it("is described, with the time of a sync", () => {
    const hardware = fingerprint(tmpdir());
    expect(hardware.hardwareThreads).toBeGreaterThan(0);
    expect(hardware.ramBytes).toBeGreaterThan(1e8);
    expect(hardware.fdatasync_p50_us).toBeGreaterThan(0);
    expect(hardware.fdatasync_p99_us).toBeGreaterThanOrEqual(hardware.fdatasync_p50_us);
    expect(hardware.fileSystem).not.toBe("unknown");
  });
});
