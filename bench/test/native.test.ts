// Runs by the native load generator: what it is told, what its report becomes, and that they stay apart from the others.

import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Prepared } from "../src/connectors/definition";
import { argumentsOf, connectionsOf, type NativeReport, resultOf } from "../src/core/native";
import type { RunFile, VerifyReport } from "../src/core/result";
import { combined, fileNameOf } from "../src/core/results";
import { runCommand } from "../src/init/commands";
import { parseCommandLine } from "../src/opts";
import { summaryRows } from "../src/report/rows";
import { summaryMarkdown } from "../src/report/tables";
import { casesOf } from "../src/tests/find";
import { transferRun } from "../src/workloads/transfers/workload";

const config = (line: string) => parseCommandLine("bench", line.split(" "), {})!.config;
const native = "test-1 --load-generator native";

describe("the command line", () => {
  it("leaves the load to the connectors' own clients by default", () => {
    expect(config("test-1").loadGenerator).toBe("typescript");
    expect(config(native).loadGenerator).toBe("native");
  });

  it("refuses what the program does not do", () => {
    expect(() => config("test-1 --load-generator fast")).toThrow("--load-generator is typescript or native");
    expect(() => config("ycsb-a --load-generator native")).toThrow("runs test-1 only, not ycsb-a");
    expect(() => config(`${native} --kill-after 2`)).toThrow("no --kill-after");
    expect(() => config(`${native} --contention-tests 0,2,0.5,64`)).toThrow("no sweeps");
  });
});

describe("what the program is told", () => {
  const options = (line: string, connectionsMax?: number, inFlight?: number) => ({
    config: config(line),
    target: {
      kind: "postgres" as const,
      url: "postgres://me:secret@db/bench",
      arguments: ["--postgres-transfer", "function"],
      ...(connectionsMax !== undefined && { connectionsMax }),
    },
    system: "postgres_direct",
    run: transferRun(config(line), { alpha: 0, concurrency: 8, inFlight }),
    connect: () => {
      throw new Error("not used");
    },
    prepared: { processes: () => null },
    say: () => {},
  });

  it("has the load of the suite, the warm-up before the window, and no password", () => {
    const words = argumentsOf(options(`${native} --seconds 20 --accounts 500 --verify-strict`));
    expect(words.join(" ")).toBe(
      "--target postgres --connections 8 --in-flight 1 --seconds 18 --warmup-seconds 2 --accounts 500 " +
        "--initial-balance 1000000000 --alpha 0 --pairs 10000000 --threads 1 --postgres-transfer function " +
        "--verify-strict --json-lines --quiet",
    );
  });

  it("has as many operations in flight where there are fewer connections", () => {
    const pipelined = options(native, 3, 40);
    expect(connectionsOf(pipelined)).toEqual({ connections: 3, inFlight: 107 });
    expect(connectionsOf({ ...pipelined, target: { kind: "rpc", url: "" } })).toEqual({
      connections: 8,
      inFlight: 40,
    });
  });

  it("has no more threads than connections", () => {
    expect(argumentsOf(options(`${native} --load-generator-threads 4`)).join(" ")).toContain("--threads 4");
    expect(argumentsOf(options(`${native} --load-generator-threads 99`)).join(" ")).toContain("--threads 8");
  });

  it("lets operations of an open loop start while others wait", () => {
    const open = options(`${native} --rate 1000`);
    expect(connectionsOf(open)).toEqual({ connections: 8, inFlight: 40 });
    expect(argumentsOf(open).join(" ")).toContain("--rate 1000");
  });

  it("reaches every connector of test-1", async () => {
    const prepared = { url: "127.0.0.1:4000" } as Prepared;
    const kinds = await Promise.all(
      casesOf("test-1").map(async ({ system, definition: load }) => {
        const definition = await load();
        return [system, definition.nativeTarget?.(config(native), prepared).kind];
      }),
    );
    expect(Object.fromEntries(kinds)).toMatchObject({
      lightcone: "websocket",
      spacetimedb: "websocket",
      spacetimedb_http: "spacetime-http",
      sqlite_rpc: "rpc",
      sqlite_batched_rpc: "batched",
      postgres_rpc: "rpc",
      postgres_sproc_rpc: "rpc",
      bun: "rpc",
      node_memory_rpc: "rpc",
      postgres_direct: "postgres",
      convex: "convex",
    });
  });
});

describe("what its report becomes", () => {
  const report: NativeReport = {
    transfers: 25,
    noops: 1,
    retries: 4,
    refused: {},
    failed: { "40001 gave way": 2 },
    disconnects: {},
    unanswered: 3,
    unfinished: 4,
    unsent: 0,
    skipped: 5,
    strict: null,
  };
  const point = (tSec: number, samples: number) => ({
    ...{ tSec, samples, tps: samples, dtMs: 1000 },
    ...{ p50_ms: 1, p95_ms: 2, p99_ms: 3 },
  });
  const verify: VerifyReport = {
    ...{ ran: true, ok: true, accounts: "2", total: "2", expected: "2", changed: "2", message: "" },
  };
  const line = `${native} --seconds 3.5 --warmup-sec 1`;
  const series = [point(2, 10), point(3, 12)];
  const histogram: [number, number][] = [
    [1000, 20],
    [9000, 5],
  ];

  it("is a result like the others, without the warm-up", () => {
    const res = resultOf(config(line), series, { report, histogram }, verify, undefined);
    expect(res).toMatchObject({
      ...{
        tps: 10,
        samples: 25,
        errors: 2,
        timeouts: 3,
        unsent: 0,
        unfinished: 4,
        noops: 1,
        skipped: 5,
        invalid: [],
      },
      ...{ p50_ms: 1, p99_ms: 9.007, mean_ms: 2.6, cpu: null },
      steady: { tps_mean: 11, duration_s: 2, warmup_sec: 1, hist_p99_ms: 9.007 },
      partialPoint: { samples: 3, dtMs: 500, tps: 6 },
      errorSamples: [{ message: "40001 gave way", count: 2 }],
    });
  });

  it("is invalid if nothing succeeded or the balances are wrong", () => {
    const nothing = { report: { ...report, transfers: 0 }, histogram: [] };
    const wrong = { ...verify, ok: false, message: "lost" };
    expect(resultOf(config(line), [], nothing, wrong, undefined).invalid).toEqual([
      "verification failed: lost",
      "nothing succeeded",
    ]);
  });

  it("stays apart from results of the connectors' own clients", () => {
    const res = resultOf(config(line), series, { report, histogram }, verify, undefined);
    const file = (generator: { load_generator?: "native" }, alpha: number) =>
      ({
        ...generator,
        ...{ test: "test-1", alpha, concurrency: 8, tag: "", startedAt: "2026-01-02T03:04:05.678Z" },
        fairness: {
          ...{ inflight: 1, pipelined: false, systemClass: "full-stack", poolMax: null },
          ...{ isolation: "serializable", durability: "synced", transport: "HTTP" },
        },
        software: {},
        results: [{ system: "sqlite_rpc", label: "", parameters: {}, res: combined([res]) }],
      }) as unknown as RunFile;
    const files = [file({}, 0), file({ load_generator: "native" }, 0)];
    expect(files.map(fileNameOf)).toEqual([
      "test-1-sqlite_rpc-a0-2026-01-02T03-04-05-678Z.json",
      "native-test-1-sqlite_rpc-a0-2026-01-02T03-04-05-678Z.json",
    ]);
    expect(summaryRows(files).map((row) => row.load_generator)).toEqual([undefined, "native"]);
    const titles = summaryMarkdown(files, []).match(/^## .*/gm);
    expect(titles).toEqual([
      "## test-1, alpha 0 – full stacks: client, server and database",
      "## Published and measured",
      "## test-1 by the native load generator, alpha 0 – full stacks: client, server and database",
    ]);
  });
});

/** The program, if it was built together with the server. */
const built =
  process.env["LIGHTCONE_LOADGEN"] ??
  (process.env["LIGHTCONE_BIN"] && join(dirname(process.env["LIGHTCONE_BIN"]), "lightcone-loadgen"));
const isThere =
  built !== undefined &&
  existsSync(built) &&
  (await runCommand(built, ["--help"]).catch(() => "")).includes("--json-lines");

describe.skipIf(!isThere)("a short run", () => {
  let runs = "";
  beforeAll(() => {
    runs = mkdtempSync(join(tmpdir(), "lightcone-bench-native-"));
    // The database runs as a user of its own.
    chmodSync(runs, 0o755);
  });
  afterAll(() => rmSync(runs, { recursive: true, force: true }));

  it("measures lightcone, spacetimedb_http, sqlite_rpc and postgres_direct, verified account by account", async () => {
    const systems = ["lightcone", "spacetimedb_http", "sqlite_rpc", "postgres_direct"];
    const line = `${native} --connectors ${systems.join(",")} --seconds 2 --concurrency 4 --accounts 1000 --verify-strict --force`;
    const output = await runCommand(
      process.execPath,
      ["--import", "tsx", "src/cli.ts", ...line.split(" "), "--alpha", "0"],
      {
        workingDirectory: resolve(import.meta.dirname, ".."),
        environment: {
          BENCH_RUNS_DIR: runs,
          BENCH_DATA_DIR: join(runs, "data"),
          BENCH_PRECOMPUTED_TRANSFER_PAIRS: "100000",
        },
      },
    );
    const files = readdirSync(runs)
      .filter((name) => /^native-test-1-.*\.json$/.test(name))
      .map((name) => JSON.parse(readFileSync(join(runs, name), "utf8")) as RunFile);
    expect(files.map(({ results }) => results[0]!.system).sort(), output).toEqual([...systems].sort());
    for (const { load_generator, fairness, results } of files) {
      const { res, system } = results[0]!;
      expect(load_generator).toBe("native");
      expect(fairness.clientLanguage).toContain("Rust");
      expect(res.samples, system).toBeGreaterThan(0);
      expect(res, system).toMatchObject({ errors: 0, timeouts: 0, invalid: [] });
      expect(res.verify, system).toMatchObject({ ran: true, ok: true, strict: { ok: true } });
      expect(res.timeSeries.length, system).toBe(2);
      expect(res.cpu!.server!.cpu_s, system).toBeGreaterThan(0);
      expect(res.cpu!.client.peak_rss_bytes, system).toBeGreaterThan(1e6);
    }
    expect(output).toContain("## test-1 by the native load generator, alpha 0");
  });
});
