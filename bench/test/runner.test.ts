// One run against a mock system and a virtual clock: connections, verification, result (chapter 09, sections 5.2 and 5.8).

import { describe, expect, it } from "vitest";
import type { Connector } from "../src/connectors/connector";
import { runOnce } from "../src/core/runner";
import { parseCommandLine } from "../src/opts";
import { rpcTransfer } from "../src/scenario_recipes/rpc_single_call";
import { transferRun } from "../src/workloads/transfers/workload";
import { type Behaviour, MockSystem } from "./support/mock_connector";
import { VirtualClock } from "./support/virtual_clock";

const settings =
  "test-1 --seconds 3 --accounts 100 --initial-balance 1000 --precomputed-transfer-pairs 1000 --no-cpu";

async function run(behaviour: Behaviour, flags = "", wrap: (connector: Connector) => Connector = (c) => c) {
  const { config } = parseCommandLine("bench", `${settings} ${flags}`.trim().split(" "), {})!;
  const clock = new VirtualClock();
  const system = new MockSystem(clock, behaviour, config.accounts, config.initialBalance);
  const said: string[] = [];
  const running = runOnce({
    config,
    ops: { transfer: rpcTransfer },
    run: transferRun(config, { alpha: 0, concurrency: 4, inFlight: config.maxInflightPerWorker }),
    connect: () => wrap(system.connector()),
    prepared: {
      processes: () => null,
      crash: async () => {
        // What is in flight is lost, and a later connection finds what was acknowledged.
        behaviour.latency = () => undefined;
      },
    },
    say: (line) => said.push(line),
    clock,
  });
  return { result: await clock.run(running), system, said };
}

describe("a run", () => {
  it("opens a root and a connection per worker, and closes them, the root last", async () => {
    const { result, system } = await run({ latency: () => 10 });
    expect(system.open).toBe(0);
    expect(system.closed).toEqual([0, 1, 2, 3, -1]);
    expect(result).toMatchObject({ samples: 1200, tps: 400, errors: 0, timeouts: 0, invalid: [] });
    expect(result.steady).toMatchObject({ duration_s: 3, zero_seconds: 0 });
    expect(result.verify).toMatchObject({
      ran: true,
      ok: true,
      accounts: "100",
      total: "100000",
      expected: "100000",
    });
    expect(result.collision_ops).toBe(2400);
  });

  it("has the published keys with numbers", async () => {
    const { result } = await run({ latency: () => 10 });
    for (const key of [
      "tps",
      "samples",
      "p50_ms",
      "p95_ms",
      "p99_ms",
      "collision_ops",
      "collision_count",
      "collision_rate",
    ]) {
      expect(result[key as keyof typeof result], key).toBeTypeOf("number");
    }
    expect(Object.keys(result.timeSeries[0]!)).toEqual(
      expect.arrayContaining(["tSec", "tps", "p50_ms", "p95_ms", "p99_ms", "samples"]),
    );
  });

  it("is invalid if the sum is wrong", async () => {
    const { result, said } = await run({ latency: () => 10, credit: 2n });
    expect(result.verify).toMatchObject({ ran: true, ok: false });
    expect(result.invalid[0]).toMatch(/^verification failed: the balances add up to/);
    expect(said).toContainEqual(expect.stringMatching(/^Verification failed: /));
  });

  it("is invalid if nothing succeeded", async () => {
    const { result } = await run({ latency: () => 10, error: () => new Error("no") });
    expect(result.invalid).toContain("nothing succeeded");
    expect(result.verify.message).toBe("no balance has changed");
  });

  it("is not verified where that is not wanted", async () => {
    const { result } = await run({ latency: () => 10 }, "--no-verify-transactions");
    expect(result.verify).toMatchObject({ ran: false, ok: true });
  });

  it("says so where a server could not tell whether the sum is right", async () => {
    const { result, said } = await run({ latency: () => 10 }, "", (connector) => {
      connector.verify = async () => ({ accounts: 0n, total: 0n, changed: 0n });
      return connector;
    });
    expect(result.verify).toMatchObject({ ran: false, ok: true });
    expect(said.at(-1)).toMatch(/^Not verified: the server was not told/);
  });

  it("checks every account with --verify-strict", async () => {
    const { result } = await run({ latency: () => 10 }, "--verify-strict");
    expect(result.verify.strict).toMatchObject({ ok: true, wrongAccounts: 0, unknownOperations: 0 });
  });

  it("finds a lost transfer with --verify-strict although the sum is right", async () => {
    const { result } = await run({ latency: () => 10 }, "--verify-strict", (connector) => {
      const verify = connector.verify!.bind(connector);
      const balances = connector.balances!.bind(connector);
      let isOver = false;
      connector.verify = () => {
        isOver = true;
        return verify();
      };
      connector.balances = async () => {
        const all = await balances();
        if (isOver) {
          all[3]! += 1n;
          all[4]! -= 1n;
        }
        return all;
      };
      return connector;
    });
    expect(result.verify).toMatchObject({ ok: false, strict: { ok: false, wrongAccounts: 2 } });
  });

  it("stops at --kill-after, and accepts what was in flight as unknown", async () => {
    const { result, said } = await run({ latency: () => 10 }, "--kill-after 1");
    expect(said).toEqual(expect.arrayContaining(["killing the server", "the server is back"]));
    expect(result.samples).toBeLessThanOrEqual(400);
    expect(result.verify.strict).toMatchObject({ ok: true });
  });

  it("does not hide why it could not connect", async () => {
    const refused = run({ latency: () => 10 }, "", (connector) => {
      connector.open = () => Promise.reject(new Error("no server is there"));
      connector.close = () => Promise.reject(new Error("not open"));
      return connector;
    });
    await expect(refused).rejects.toThrow("no server is there");
  });
});
