// The measurement and the loops of workloads, with a clock that only the test moves.

import { describe, expect, it } from "vitest";
import type { Connector } from "../src/connectors/connector";
import { inTurn } from "../src/core/loops";
import { Measurement } from "../src/core/measurement";
import type { Generator, Limit, Outcome } from "../src/workloads/workload";
import { VirtualClock } from "./support/virtual_clock";

interface Setting {
  workers?: number;
  inFlight?: number;
  limit: Limit;
  rate?: number;
  /** What an operation does, by its number. */
  answer?: (number: number, clock: VirtualClock) => Promise<Outcome>;
  opTimeoutMs?: number;
}

async function run({ workers = 1, inFlight = 1, limit, rate, answer, opTimeoutMs = 15_000 }: Setting) {
  const clock = new VirtualClock();
  const start = clock.now();
  let number = 0;
  let running = 0;
  let mostRunning = 0;
  const startedAt: number[] = [];
  const act =
    answer ??
    (async (): Promise<Outcome> => {
      await clock.sleep(10);
      return { ok: true };
    });
  const measurement = new Measurement({
    clock,
    workers: Array.from({ length: workers }, () => ({ name: "mock" }) as Connector),
    ops: {
      work: async () => {
        startedAt.push(clock.now() - start);
        mostRunning = Math.max(mostRunning, ++running);
        try {
          return await act(number++, clock);
        } finally {
          running--;
        }
      },
    },
    ...(limit.mode === "time" && { seconds: limit.seconds }),
    warmupSec: limit.mode === "time" ? limit.warmupSec : 0,
    opTimeoutMs,
    minOpTimeoutMs: 250,
    tailSlackMs: 1000,
  });
  const generators = Array.from({ length: workers }, (): Generator => {
    let left = 50;
    return {
      next: () => (limit.mode === "drain" && left-- === 0 ? undefined : { kind: "work", args: {} }),
    };
  });
  await clock.run(
    measurement.measure(() => inTurn(measurement, generators, { limit, inFlight, rate, givesUp: true })),
  );
  return { measurement, startedAt, mostRunning: () => mostRunning };
}

describe("a timed run", () => {
  it("counts what was answered inside the window, by kind and by second", async () => {
    const { measurement } = await run({
      workers: 2,
      limit: { mode: "time", seconds: 3, warmupSec: 2 },
      answer: async (_, clock) => {
        await clock.sleep(11);
        return { ok: true };
      },
    });
    expect(measurement.samples).toBe(544);
    expect(measurement.elapsedSeconds).toBe(3);
    expect(measurement.kinds.get("work")).toMatchObject({ count: 546, ok: 544, miss: 0, errors: 0 });
    expect(measurement.timeSeries.map(({ samples }) => samples)).toEqual([180, 182, 182]);
    expect(measurement.histogram.percentile(50)).toBeCloseTo(11, 1);
    // Both workers were waiting when the window ended: their ages count.
    expect(measurement.unfinished).toBe(2);
    expect(measurement.histogram.count).toBe(546);
    expect(measurement.steadyHistogram.count).toBe(366);
  });

  it("leaves out what is answered after the end", async () => {
    const { measurement } = await run({
      limit: { mode: "time", seconds: 1, warmupSec: 0 },
      answer: async (_, clock) => {
        await clock.sleep(300);
        return { ok: true };
      },
    });
    expect([measurement.samples, measurement.completedTotal]).toEqual([3, 4]);
  });
});

describe("a counted run", () => {
  it("performs as many operations as asked for, by any worker that is free", async () => {
    const { measurement, mostRunning } = await run({
      workers: 3,
      inFlight: 4,
      limit: { mode: "count", operations: 100 },
    });
    expect(measurement.kinds.get("work")!.count).toBe(100);
    expect(mostRunning()).toBe(12);
    expect(measurement.elapsedSeconds).toBeCloseTo(0.09, 6);
  });
});

describe("a drained run", () => {
  it("ends when the generators have nothing more", async () => {
    const { measurement } = await run({ workers: 4, limit: { mode: "drain" } });
    expect(measurement.samples).toBe(200);
  });
});

describe("an open loop", () => {
  it("starts operations at their times, and measures from those", async () => {
    const { measurement, startedAt } = await run({
      workers: 2,
      rate: 20,
      limit: { mode: "count", operations: 6 },
    });
    expect(startedAt).toEqual([0, 50, 100, 150, 200, 250]);
    expect(measurement.histogram.summary().mean_ms).toBe(10);
  });

  it("does not hide that a system is too slow", async () => {
    const { measurement, startedAt } = await run({
      rate: 100,
      limit: { mode: "count", operations: 3 },
      answer: async (_, clock) => {
        await clock.sleep(100);
        return { ok: true };
      },
    });
    expect(startedAt).toEqual([0, 100, 200]);
    // 100, 190 and 280 ms after the times at which they should have started.
    expect(measurement.histogram.summary().mean_ms).toBe(190);
  });
});

describe("what does not succeed", () => {
  it("is counted apart: misses, refusals, errors", async () => {
    const outcomes: Outcome[] = [{ ok: true }, { ok: true, miss: true }, { ok: false }];
    const { measurement } = await run({
      limit: { mode: "count", operations: 8 },
      answer: async (number, clock) => {
        await clock.sleep(1);
        const outcome = outcomes[number % 4];
        if (!outcome) throw new Error("broken");
        return outcome;
      },
    });
    expect(measurement.kinds.get("work")).toMatchObject({ count: 8, ok: 2, miss: 2, errors: 4 });
    expect([measurement.samples, measurement.misses, measurement.errors]).toEqual([2, 2, 4]);
    expect(measurement.errorSamples).toEqual([
      { message: "answered with a refusal", count: 2 },
      { message: "broken", count: 2 },
    ]);
  });

  it("ends the run when nothing else happens", async () => {
    const { measurement } = await run({
      workers: 2,
      limit: { mode: "count", operations: 1_000_000 },
      answer: () => Promise.reject(new Error("broken")),
    });
    expect([measurement.samples, measurement.errors]).toEqual([0, 200]);
  });

  it("does not hold up its worker for ever", async () => {
    const { measurement } = await run({
      opTimeoutMs: 400,
      limit: { mode: "count", operations: 3 },
      answer: async (number, clock) => {
        await clock.sleep(number === 0 ? 60_000 : 10);
        return { ok: true };
      },
    });
    expect([measurement.samples, measurement.timeouts]).toEqual([2, 1]);
    expect(measurement.errorSamples).toEqual([{ message: "mock: work timed out", count: 1 }]);
  });
});
