// `pnpm run bench` as a user starts it, with real systems on this machine: a short run, its files, its exit codes.

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { RunFile } from "../src/core/result";

const packageDirectory = resolve(import.meta.dirname, "..");
const runs = mkdtempSync(join(tmpdir(), "lightcone-bench-runs-"));
afterAll(() => rmSync(runs, { recursive: true, force: true }));

interface Ended {
  code: number | null;
  output: string;
}

const data = join(runs, "data");

function start(file: string, line: string, environment: Record<string, string> = {}) {
  return spawn(process.execPath, ["--import", "tsx", file, ...line.split(" ").filter(Boolean)], {
    cwd: packageDirectory,
    env: {
      ...process.env,
      BENCH_RUNS_DIR: runs,
      BENCH_DATA_DIR: data,
      BENCH_PRECOMPUTED_TRANSFER_PAIRS: "100000",
      ...environment,
    },
  });
}

function ended(child: ReturnType<typeof start>): Promise<Ended> {
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text) => {
      output += text;
    });
  }
  return new Promise((done) => child.once("close", (code) => done({ code, output })));
}

const bench = (line: string, environment: Record<string, string> = {}, directory = runs) =>
  ended(start("src/cli.ts", `${line} --force`, { BENCH_RUNS_DIR: directory, ...environment }));

/** Processes whose command line or environment names the data directory of these tests. */
const left = () =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        const texts = ["cmdline", "environ"].map((file) => readFileSync(`/proc/${pid}/${file}`, "latin1"));
        return texts.some((text) => text.includes(data));
      } catch {
        return false;
      }
    });

const directoriesLeft = () => readdirSync(data).filter((name) => name.startsWith("run-"));

const resultsIn = (directory: string): RunFile[] =>
  readdirSync(directory)
    .filter((name) => /^test-1-.*\.json$/.test(name))
    .sort()
    .map((name) => JSON.parse(readFileSync(join(directory, name), "utf8")) as RunFile);

describe("a short run", () => {
  it("measures lightcone, spacetimedb and sqlite_rpc, verified account by account", async () => {
    const { code, output } = await bench(
      "test-1 --connectors lightcone,spacetimedb,sqlite_rpc --seconds 3 --concurrency 8 --accounts 1000 --verify-strict",
    );
    expect(code, output).toBe(0);
    const files = resultsIn(runs);
    expect(files.map((file) => file.results[0]!.system)).toEqual(["lightcone", "spacetimedb", "sqlite_rpc"]);
    for (const { results, fairness, hardware, software } of files) {
      const { res, system } = results[0]!;
      expect(res.samples, system).toBeGreaterThan(10);
      expect(res, system).toMatchObject({ errors: 0, timeouts: 0, invalid: [] });
      expect(res.verify, system).toMatchObject({
        ran: true,
        ok: true,
        accounts: "1000",
        strict: { ok: true },
      });
      expect(res.cpu!.server!.cpu_s, system).toBeGreaterThan(0);
      expect(res.cpu!.server!.peak_rss_bytes, system).toBeGreaterThan(1e7);
      expect(res.timeSeries.length, system).toBeGreaterThanOrEqual(2);
      expect(fairness.durability, system).toContain("synced before the answer");
      expect(fairness.isolation).toBe("serializable");
      expect(fairness.rttMs, system).toBeGreaterThan(0);
      expect(hardware.fdatasync_p50_us).toBeGreaterThan(0);
      expect(software["suiteCommit"]).toBeTruthy();
    }
    expect(output).toContain("| System | clients | pipelining |");
    expect(directoriesLeft()).toEqual([]);
    expect(left()).toEqual([]);
  });

  it("keeps every acknowledged transfer when the server is killed", async () => {
    const directory = mkdtempSync(join(runs, "kill-"));
    const line = "test-1 --connectors lightcone --seconds 3 --concurrency 8 --accounts 1000 --kill-after 1";
    const { code, output } = await bench(
      `${line} --bench-pipelined --max-inflight-per-worker 10`,
      {},
      directory,
    );
    expect(code, output).toBe(0);
    expect(output).toContain("the server is back");
    const { res } = resultsIn(directory)[0]!.results[0]!;
    expect(res.samples).toBeGreaterThan(10);
    expect(res.verify).toMatchObject({ ok: true, strict: { ok: true } });
  });

  it("measures several in flight, over the batched SQLite's own protocol and the memory server", async () => {
    const directory = mkdtempSync(join(runs, "matrix-"));
    const { code, output } = await bench(
      "test-1 --connectors sqlite_batched_rpc,node_memory_rpc --seconds 2 --concurrency 4 --accounts 1000 --matrix --verify-strict",
      {},
      directory,
    );
    expect(code, output).toBe(0);
    expect(resultsIn(directory)).toHaveLength(8);
    expect(output).toContain("## One and many in flight");
    expect(output).toContain("not durable");
  });
});

describe("an interrupted run", () => {
  const interrupted = async (signal: NodeJS.Signals): Promise<Ended> => {
    const line = "test-1 --connectors lightcone,sqlite_rpc --seconds 60 --concurrency 4 --accounts 1000";
    const child = start("src/cli.ts", `${line} --force`);
    const end = ended(child);
    await new Promise<void>((done) => {
      child.stdout.on("data", (text) => String(text).includes(" TPS ") && done());
      child.once("close", () => done());
    });
    expect(left().length).toBeGreaterThan(1);
    child.kill(signal);
    return end;
  };

  it("leaves no process and no data behind", async () => {
    const { code, output } = await interrupted("SIGINT");
    expect(code, output).toBe(130);
    await expect.poll(left).toEqual([]);
    expect(directoriesLeft()).toEqual([]);
  });

  it("leaves no process behind even if it is killed", async () => {
    await interrupted("SIGKILL");
    await expect.poll(left).toEqual([]);
    // The next one removes its data.
    expect(directoriesLeft()).toHaveLength(1);
    await bench("test-1 --connectors node_memory_rpc --seconds 1 --accounts 1000");
    expect(directoriesLeft()).toEqual([]);
  });
});

describe("services", () => {
  const services = (line: string) => ended(start("src/init/services-cli.ts", line));

  it("are started by prep, used by bench, and stopped", async () => {
    try {
      const prepared = await ended(
        start("src/init/init-all.ts", "test-1 --connectors node_memory_rpc --accounts 1000"),
      );
      expect(prepared.code, prepared.output).toBe(0);
      expect(prepared.output).toContain("node_memory_rpc is ready at http://127.0.0.1:4105");
      expect(await services("status")).toMatchObject({ code: 0, output: expect.stringContaining("4105") });
      const { code, output } = await bench("test-1 --connectors node_memory_rpc --seconds 1 --accounts 1000");
      expect(code, output).toBe(0);
      expect(output).toContain("using the server at http://127.0.0.1:4105");
    } finally {
      expect((await services("stop")).output).toContain("stopped");
    }
    expect(await services("status")).toEqual({ code: 3, output: "[bench] nothing runs\n" });
    await expect.poll(left).toEqual([]);
  });

  it("say what is wrong with the command line, and what cannot be started", async () => {
    expect(await services("begin")).toEqual({
      code: 1,
      output: "error: services start|stop|status, not begin\n",
    });
    const prepared = await ended(start("src/init/init-all.ts", "test-1 --connectors nothing"));
    expect(prepared).toEqual({ code: 1, output: "error: nothing is not a valid value for --connectors\n" });
    const absent = await ended(
      start("src/init/init-all.ts", "--connectors spacetimedb_ref --stdb-ref-url 127.0.0.1:1"),
    );
    expect(absent.code, absent.output).toBe(3);
    await services("stop");
  });
});

describe("exit codes", () => {
  it("is 1 for a usage error, told in one line", async () => {
    const { code, output } = await bench("test-1 --connectors nothing");
    expect([code, output]).toEqual([1, "error: nothing is not a valid value for --connectors\n"]);
    expect(await bench("no-such-test")).toMatchObject({
      code: 1,
      output: expect.stringContaining("there is no test no-such-test"),
    });
    expect(await bench("--bogus")).toEqual({ code: 1, output: "error: Unknown option `--bogus`\n" });
  });

  it("is 0 for --help", async () => {
    const { code, output } = await bench("--help");
    expect(code).toBe(0);
    expect(output).toContain("--connectors <list>");
  });

  it("is 1 where the gate has nothing to compare with", async () => {
    expect(await ended(start("src/gate.ts", "nonsense"))).toEqual({
      code: 1,
      output: "error: nonsense is no commit of this repository\n",
    });
    expect((await ended(start("src/gate.ts", "HEAD --pairs 2"))).output).toContain(
      "--pairs must be at least 3",
    );
  });

  it("is 3 where a system that was asked for is not running, with what to start", async () => {
    const { code, output } = await bench(
      "test-1 --connectors spacetimedb_ref --seconds 1 --stdb-ref-url 127.0.0.1:1",
    );
    expect(code, output).toBe(3);
    expect(output).toContain("spacetimedb_ref: not running: no server at 127.0.0.1:1: start it with");
  });
});
