// The command line and the environment (chapter 09, section 3).

import { availableParallelism } from "node:os";
import { describe, expect, it } from "vitest";
import { httpUrl, webSocketUrl } from "../src/config";
import { planOf } from "../src/core/bench";
import { parseCommandLine } from "../src/opts";
import { casesOf } from "../src/tests/find";
import { loadsOf } from "../src/workloads/transfers/workload";

const parse = (words: string[], environment: Record<string, string> = {}) =>
  parseCommandLine("bench", words, environment)!;
const config = (line: string, environment: Record<string, string> = {}) =>
  parse(line === "" ? [] : line.split(" "), environment).config;

describe("options", () => {
  it("has the defaults of the chapter", () => {
    expect(parse([]).test).toBe("test-1");
    expect(config("")).toMatchObject({
      seconds: 300,
      concurrency: 64,
      alphas: [1.5],
      accounts: 100_000,
      initialBalance: 1_000_000_000,
      runs: 1,
      stdbModule: "test-1",
      stdbModulePath: "./spacetimedb",
      stdbCompression: "none",
      stdbConfirmedReads: true,
      poolMax: 2 * availableParallelism(),
      bunUrl: "http://127.0.0.1:4001",
      opTimeoutMs: 15_000,
      minOpTimeoutMs: 250,
      tailSlackMs: 1000,
      precomputedTransferPairs: 10_000_000,
      benchPipelined: undefined,
      maxInflightPerWorker: undefined,
      logErrors: false,
      warmupSec: 30,
    });
    expect(config("--seconds 10").warmupSec).toBe(1);
  });

  it("takes a flag before the environment before the default", () => {
    const environment = { SEED_ACCOUNTS: "500", STDB_MODULE: "other" };
    expect(config("", environment)).toMatchObject({ accounts: 500, stdbModule: "other" });
    expect(config("--accounts 7", environment).accounts).toBe(7);
  });

  it("reads lists with commas and by repetition", () => {
    expect(config("--alpha 0,1.5").alphas).toEqual([0, 1.5]);
    expect(config("--connectors bun --connectors sqlite_rpc,bun").connectors).toEqual(["bun", "sqlite_rpc"]);
    expect(config("--systems bun --connectors sqlite_rpc").connectors).toEqual(["sqlite_rpc"]);
    expect(parse(["--alpha", ""]).config.alphas).toEqual([0]);
  });

  it("reads the sweeps as one value or as four", () => {
    const expected = { from: 0, to: 2, step: 0.5, fixed: 8 };
    expect(parse("test-1 --contention-tests 0,2,0.5,8".split(" ")).contentionTests).toEqual(expected);
    const four = parse("--contention-tests 0 2 0.5 8 --seconds 5".split(" "));
    expect(four.contentionTests).toEqual(expected);
    expect(four.config).toMatchObject({ concurrency: 8, seconds: 5 });
    expect(parse("--concurrency-tests 1,64,2,0.99".split(" ")).config.alphas).toEqual([0.99]);
  });

  it("knows yes and no as the chapter has them", () => {
    const pipelined = (words: string, environment: Record<string, string> = {}) =>
      config(`--max-inflight-per-worker 4 ${words}`.trim(), environment).benchPipelined;
    expect(pipelined("")).toBeUndefined();
    expect(pipelined("--bench-pipelined")).toBe(true);
    expect(pipelined("--bench-pipelined 0")).toBe(true);
    expect(pipelined("--bench-pipelined=false")).toBe(false);
    expect(pipelined("--no-bench-pipelined")).toBe(false);
    expect(pipelined("", { BENCH_PIPELINED: "0" })).toBe(false);
    expect(pipelined("", { BENCH_PIPELINED: "yes" })).toBe(true);
    expect(config("--no-stdb-confirmed-reads").stdbConfirmedReads).toBe(false);
    expect(config("", { STDB_CONFIRMED_READS: "false" }).stdbConfirmedReads).toBe(false);
    expect(config("--durability off")).toMatchObject({ stdbConfirmedReads: false, sqliteDurability: "off" });
  });

  it("takes an empty number of the environment as 0", () => {
    expect(config("", { TAIL_SLACK_MS: "" }).tailSlackMs).toBe(0);
  });

  it.each([
    ["--bogus", "Unknown option `--bogus`"],
    ["test-1 b", "Unused args: `b`"],
    ["--connectors sqlite", "sqlite is not a valid value for --connectors"],
    ["--seconds many", "invalid number 'many'"],
    ["--seconds 0", "--seconds must be above 0"],
    ["--stdb-compression brotli", "--stdb-compression is none or gzip, not brotli"],
    ["--bench-pipelined", "--bench-pipelined needs --max-inflight-per-worker"],
    ["--max-inflight-per-worker 0", "would never let the event loop run"],
    ["--contention-tests 0,1,2", "has four numbers, not 3"],
    ["--concurrency-tests 1,64,1,0", "FACTOR must be above 1"],
    ["--contention-tests 0,1,0,4", "STEP must be above 0"],
    ["--concurrency 0", "a whole number of at least 1"],
  ])("refuses `%s`", (line, message) => {
    expect(() => config(line)).toThrow(message);
  });

  it("refuses a number of the environment that is none", () => {
    expect(() => config("", { SEED_ACCOUNTS: "many" })).toThrow("invalid number for SEED_ACCOUNTS: many");
  });
});

describe("addresses", () => {
  it("reduces an address to host and port, and keeps TLS", () => {
    expect(webSocketUrl("127.0.0.1:3000")).toBe("ws://127.0.0.1:3000/");
    expect(webSocketUrl("http://example.org:3000/path?query")).toBe("ws://example.org:3000/");
    expect(webSocketUrl("https://example.org")).toBe("wss://example.org/");
    expect(httpUrl("ws://[::1]:3000")).toBe("http://[::1]:3000");
    expect(() => httpUrl("http://")).toThrow("--stdb-url");
  });
});

describe("plan", () => {
  const cases = ["a", "b", "c"].map((system) => ({ ...casesOf("test-1")[0]!, system }));

  it("rotates the connectors from one repetition to the next", () => {
    const plan = planOf(config("--runs 4"), cases);
    const order = [1, 2, 3, 4].map((run) =>
      plan
        .filter((block) => block.run === run)
        .map((block) => block.testCase.system)
        .join(""),
    );
    expect(order).toEqual(["abc", "bca", "cab", "abc"]);
  });

  it("has two alphas and two windows with --matrix", () => {
    expect(loadsOf(config("--matrix --concurrency 8"))).toEqual([
      { alpha: 0, concurrency: 8, inFlight: undefined },
      { alpha: 0, concurrency: 8, inFlight: 40 },
      { alpha: 1.5, concurrency: 8, inFlight: undefined },
      { alpha: 1.5, concurrency: 8, inFlight: 40 },
    ]);
    expect(loadsOf(config("--bench-pipelined --max-inflight-per-worker 96"))).toEqual([
      { alpha: 1.5, concurrency: 64, inFlight: 96 },
    ]);
  });
});
