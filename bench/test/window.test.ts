// The timed window against a mock system and a virtual clock (chapter 09, sections 5.3 to 5.7).

import { describe, expect, it } from "vitest";
import { type Connector, Refused } from "../src/connectors/connector";
import { inTurn, refilled, whenDue } from "../src/core/loops";
import { Measurement } from "../src/core/measurement";
import type { SeriesPoint } from "../src/core/result";
import { rpcTransfer } from "../src/scenario_recipes/rpc_single_call";
import { Ledger } from "../src/workloads/transfers/ledger";
import { makePairs, type Pairs } from "../src/workloads/transfers/pairs";
import { TransferGenerator, Transfers } from "../src/workloads/transfers/workload";
import type { RunOperation } from "../src/workloads/workload";
import { type Behaviour, MockSystem } from "./support/mock_connector";
import { VirtualClock } from "./support/virtual_clock";

const accounts = 100;
const pairs = makePairs(1000, accounts, 0);

interface Changes {
  workerCount?: number;
  run?: RunOperation;
  pairs?: Pairs;
  ledger?: Ledger;
  inFlight?: number;
  rate?: number;
  seconds?: number;
  warmupSec?: number;
  opTimeoutMs?: number;
  minOpTimeoutMs?: number;
  tailSlackMs?: number;
}

async function measure(behaviour: Behaviour, changes: Changes = {}, clock = new VirtualClock()) {
  const { workerCount = 4, inFlight, rate, seconds = 3, warmupSec = 0 } = changes;
  const { opTimeoutMs = 15_000, minOpTimeoutMs = 250, tailSlackMs = 1000 } = changes;
  const system = new MockSystem(clock, behaviour, accounts);
  const root = system.connector();
  const workers: Connector[] = [];
  for (let index = 0; index < workerCount; index++) {
    workers.push(await root.createWorker!({ index, total: workerCount }));
  }
  const points: (SeriesPoint | undefined)[] = [];
  const start = clock.now();
  const shared = new Transfers(changes.pairs ?? pairs, accounts);
  shared.ledger = changes.ledger;
  const result = new Measurement({
    ...{ clock, workers, ops: { transfer: changes.run ?? rpcTransfer } },
    ...{ seconds, warmupSec, opTimeoutMs, minOpTimeoutMs, tailSlackMs },
    onInterval: (point) => points.push(point),
  });
  const generators = workers.map((_, worker) => new TransferGenerator(shared, worker, workerCount));
  const loop = () => {
    if (rate !== undefined) return whenDue(result, generators, rate);
    if (inFlight !== undefined) return refilled(result, generators, inFlight);
    const limit = { mode: "time", seconds, warmupSec } as const;
    return inTurn(result, generators, { limit, inFlight: 1, givesUp: false });
  };
  await clock.run(result.measure(loop));
  return { result, shared, system, clock, start, points, elapsed: clock.now() - start };
}

const constant = (milliseconds: number): Behaviour => ({ latency: () => milliseconds });

describe("one in flight per worker", () => {
  it("starts the next operation when the one before has ended, and counts what ended in the window", async () => {
    const { result, system, start } = await measure(constant(10));
    // 4 workers, one operation each 10 ms; the ones that end at 3000 ms exactly still count.
    expect(result.samples).toBe(4 * 300);
    expect(result.completedTotal).toBe(1200);
    expect(system.inFlightMost).toBe(4);
    expect(Math.max(...system.started.map(({ at }) => at - start))).toBe(2990);
    expect(result.histogram.percentile(50)).toBeCloseTo(10, 1);
  });

  it("does not count an operation that ends after the window, and starts none at its end", async () => {
    const { result, system, start, elapsed } = await measure(constant(1001), { workerCount: 1 });
    expect(system.started.map(({ at }) => at - start)).toEqual([0, 1001, 2002]);
    expect(result.samples).toBe(2);
    expect(result.completedTotal).toBe(3);
    expect(elapsed).toBe(3003);
  });

  it("takes the pairs in order, each worker from its own start, wrapping at the end", async () => {
    const short = makePairs(10, accounts, 0);
    const { system } = await measure(constant(400), { workerCount: 2, pairs: short });
    const ofWorker = (worker: number) =>
      system.started.filter((call) => call.worker === worker).map(({ from, to }) => `${from}>${to}`);
    const expected = (start: number) =>
      Array.from({ length: 8 }, (_, i) => `${short.from[(start + i) % 10]}>${short.to[(start + i) % 10]}`);
    expect(ofWorker(0)).toEqual(expected(0));
    expect(ofWorker(1)).toEqual(expected(5));
  });
});

describe("what is without an answer when the window ends", () => {
  it("counts with its age, and not as a success", async () => {
    // The first operation of each worker ends after a second, the next one never.
    let calls = 0;
    const { result } = await measure({ latency: () => (calls++ < 4 ? 1000 : 60_000) });
    expect(result.samples).toBe(4);
    expect(result.unfinished).toBe(4);
    expect(result.histogram.count).toBe(8);
    expect(result.histogram.percentile(99)).toBeCloseTo(2000, -1);
    expect(result.timeSeries.map(({ samples }) => samples)).toEqual([0, 4, 0]);
  });

  it("counts with its age if it was due and could not be started", async () => {
    const stalled = new VirtualClock();
    // Starting an operation takes half a second of this client's time.
    const run = async () => {
      stalled.advance(500);
      return {};
    };
    const { result } = await measure(constant(1), { run, workerCount: 1, seconds: 2, rate: 10 }, stalled);
    expect(result.unsent).toBe(16);
    expect(result.histogram.count).toBe(result.samples + result.unfinished + result.unsent);
    expect(result.histogram.percentile(100)).toBeGreaterThan(1500);
  });

  it("counts with its age when it has timed out", async () => {
    const { result } = await measure({ latency: () => undefined }, { opTimeoutMs: 500 });
    expect(result.samples).toBe(0);
    expect(result.timeouts).toBeGreaterThan(0);
    expect(result.histogram.percentile(50)).toBeGreaterThanOrEqual(500);
  });
});

describe("several in flight per worker", () => {
  it("fills the window at once and looks again after a timer", async () => {
    const { result, system, start } = await measure(constant(10), { workerCount: 2, inFlight: 40 });
    expect(system.started.filter(({ at }) => at === start)).toHaveLength(80);
    expect(system.inFlightMost).toBe(80);
    // An answer frees its place for the look after it, so a round takes 10 or 11 ms.
    expect(result.samples).toBeGreaterThan((80 * 3000) / 11.1);
    expect(result.samples).toBeLessThanOrEqual((80 * 3000) / 10);
  });

  it("waits for what is in flight after the end", async () => {
    const { result, elapsed } = await measure(constant(700), { inFlight: 2, workerCount: 1, seconds: 1 });
    expect(result.samples).toBe(2);
    expect(result.completedTotal).toBe(4);
    expect(elapsed).toBeGreaterThanOrEqual(1400);
  });
});

describe("open loop", () => {
  it("starts each operation when it is due, over all workers in turn", async () => {
    const { result, system, start } = await measure(constant(10), { rate: 100, workerCount: 2, seconds: 1 });
    expect(system.started.map(({ at }) => at - start)).toEqual(Array.from({ length: 100 }, (_, i) => i * 10));
    expect(system.started.slice(0, 4).map(({ worker }) => worker)).toEqual([0, 1, 0, 1]);
    expect(result.completedTotal).toBe(100);
    expect(result.histogram.percentile(50)).toBeCloseTo(10, 1);
  });

  it("counts the time since an operation was due, also where the system stalls", async () => {
    // Nothing is answered until 500 ms after the start (the clock starts at 1000).
    const behaviour: Behaviour = { latency: (_, now) => Math.max(10, 1500 - now) };
    const { result, system } = await measure(behaviour, { rate: 100, workerCount: 1, seconds: 1 });
    expect(system.inFlightMost).toBeGreaterThanOrEqual(50);
    expect(result.histogram.percentile(99)).toBeGreaterThan(480);
    expect(result.histogram.percentile(50)).toBeGreaterThan(9);
  });
});

describe("operations that fail", () => {
  it("counts errors apart, keeps their texts, and goes on", async () => {
    const behaviour: Behaviour = {
      latency: () => 10,
      error: (call) => (call % 3 === 0 ? new Error(`kind ${call % 2}`) : undefined),
    };
    const { result } = await measure(behaviour);
    expect(result.errors).toBe(400);
    expect(result.samples).toBe(800);
    expect(result.errorSamples).toEqual([
      { message: "kind 0", count: 200 },
      { message: "kind 1", count: 200 },
    ]);
  });

  it("keeps at most 20 texts", async () => {
    let number = 0;
    const { result } = await measure({ latency: () => 10, error: () => new Error(`${number++}`) });
    expect(result.samples).toBe(0);
    expect(result.errorSamples).toHaveLength(20);
    expect(result.histogram.percentile(50)).toBe(0);
  });

  it("treats an operation that throws at once like one that rejects", async () => {
    let calls = 0;
    const run = () => {
      calls++;
      if (calls > 50) return new Promise<never>(() => {});
      throw new Error("at once");
    };
    const { result } = await measure(constant(10), { run, workerCount: 1 });
    expect(result.errors).toBe(50);
    expect(result.timeouts).toBe(1);
  });

  it("gives up an operation without an answer, and its worker goes on", async () => {
    const behaviour: Behaviour = { latency: (call) => (call === 0 ? undefined : 10) };
    const { result, elapsed } = await measure(behaviour, { workerCount: 1, opTimeoutMs: 500 });
    expect(result.timeouts).toBe(1);
    expect(result.samples).toBeGreaterThanOrEqual(248);
    expect(result.errorSamples).toEqual([{ message: "mock: transfer timed out", count: 1 }]);
    expect(elapsed).toBeLessThan(3020);
  });

  it("ends with the slack after the window where nothing is answered any more", async () => {
    const { result, elapsed } = await measure({ latency: () => undefined });
    expect(result.timeouts).toBe(4);
    // What is left of the window, and the slack.
    expect(elapsed).toBeGreaterThanOrEqual(4000);
    expect(elapsed).toBeLessThan(4030);
  });

  it("never gives an operation less than the least timeout", async () => {
    const behaviour: Behaviour = { latency: (_, now) => (now >= 3990 ? undefined : 995) };
    const { elapsed } = await measure(behaviour, { workerCount: 1, tailSlackMs: 0 });
    // The last operation starts 15 ms before the end and has 250 ms.
    expect(elapsed).toBeGreaterThanOrEqual(2985 + 250);
    expect(elapsed).toBeLessThan(2985 + 250 + 25);
  });

  it("ignores an answer that comes after the timeout", async () => {
    const behaviour: Behaviour = { latency: (call) => (call === 0 ? 800 : 100) };
    const { result } = await measure(behaviour, { workerCount: 1, opTimeoutMs: 300, minOpTimeoutMs: 1 });
    expect(result.timeouts).toBe(1);
    expect(result.completedTotal).toBe(27);
  });
});

describe("series", () => {
  it("has a point per second, with the true length of the interval", async () => {
    const { result, points } = await measure(constant(10));
    expect(result.timeSeries.map(({ tSec, tps, samples, dtMs }) => [tSec, tps, samples, dtMs])).toEqual([
      // What ends at the very end of the interval is in the next one.
      [1, 396, 396, 1000],
      [2, 400, 400, 1000],
      [3, 400, 400, 1000],
    ]);
    expect(result.partialPoint).toMatchObject({ samples: 4, dtMs: 0, tps: 0 });
    expect(points.map((point) => point?.tSec)).toEqual([undefined, 1, 2, 3, undefined]);
  });

  it("keeps the rest of the window apart", async () => {
    const { result } = await measure(constant(10), { seconds: 2.5 });
    expect(result.timeSeries).toHaveLength(2);
    expect(result.partialPoint).toMatchObject({ tSec: 2.5, samples: 204, dtMs: 500, tps: 408 });
    expect(result.samples).toBe(1000);
  });

  it("leaves the warm-up out of the steady histogram", async () => {
    const behaviour: Behaviour = { latency: (_, now) => (now < 1900 ? 100 : 10) };
    const { result } = await measure(behaviour, { warmupSec: 2 });
    expect(result.histogram.percentile(100)).toBeCloseTo(100, 0);
    expect(result.steadyHistogram.percentile(100)).toBeLessThan(11);
    expect(result.steadyHistogram.count).toBe(804);
  });
});

describe("pairs of one account", () => {
  const of = (from: number[], to: number[]): Pairs => ({
    from: Uint32Array.from(from),
    to: Uint32Array.from(to),
    length: from.length,
  });

  it("are skipped, and never sent", async () => {
    const { result, shared, system } = await measure(constant(10), {
      pairs: of([1, 2, 3], [1, 5, 4]),
      workerCount: 1,
    });
    expect(system.started.some(({ from, to }) => from === to)).toBe(false);
    expect(result.samples).toBe(300);
    expect(shared.skipped).toBe(150);
  });

  it("do not stop the event loop, however many there are", async () => {
    const many = of(new Array(50_000).fill(1), new Array(50_000).fill(1));
    many.to[49_999] = 2;
    const { result } = await measure(constant(10), { pairs: many, workerCount: 1, seconds: 1 });
    expect(result.samples).toBeGreaterThan(10);
  });

  it("are refused where there are no others", async () => {
    await expect(measure(constant(10), { pairs: of([1], [1]) })).rejects.toThrow(
      "no pair of two different accounts",
    );
  });
});

describe("strict check", () => {
  const checked = async (behaviour: Behaviour, tamper?: (balances: BigInt64Array) => void) => {
    const baseline = new BigInt64Array(accounts).fill(1000n);
    const ledger = new Ledger(baseline);
    const { system, result } = await measure(behaviour, { ledger });
    tamper?.(system.balances);
    return { verdict: ledger.check(system.balances), result };
  };

  it("finds every account right after acknowledged, refused and answered-without-effect transfers", async () => {
    const { verdict, result } = await checked({
      latency: () => 10,
      error: (call) => (call % 5 === 0 ? new Refused("no") : undefined),
      answer: (call) => (call % 7 === 0 ? { applied: false } : undefined),
    });
    expect(verdict).toMatchObject({ ok: true, unknownOperations: 0 });
    expect(result.noops).toBeGreaterThan(100);
  });

  it("finds a lost transfer", async () => {
    const { verdict } = await checked(constant(10), (balances) => {
      balances[7]! += 1n;
      balances[8]! -= 1n;
    });
    expect(verdict.ok).toBe(false);
    expect(verdict.wrongAccounts).toBe(2);
    expect(verdict.message).toContain("account 7");
  });

  it("allows for transfers whose outcome is unknown", async () => {
    const behaviour: Behaviour = { latency: (call) => (call === 5 ? undefined : 10) };
    const { verdict } = await checked(behaviour);
    expect(verdict).toMatchObject({ ok: true, unknownOperations: 1 });
    const lost = await checked({
      latency: () => 10,
      error: (call) => (call === 5 ? new Error("gone") : undefined),
    });
    expect(lost.verdict).toMatchObject({ ok: true, unknownOperations: 1 });
  });
});

describe("collisions", () => {
  it("counts two begins per started operation, also for late and failed ones", async () => {
    const { shared, system } = await measure({
      latency: () => 10,
      error: (call) => (call % 2 ? new Error("no") : undefined),
    });
    expect(shared.collisions.ops).toBe(2 * system.started.length);
  });
});
