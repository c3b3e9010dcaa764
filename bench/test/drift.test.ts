// The chart of what the gate has recorded.

import { describe, expect, it } from "vitest";
import { driftChart, driftOf, type RecordedGate } from "../src/report/drift";

const gate = (timestamp: string, base: string, head: string, slowdownPct: number): RecordedGate => ({
  ...{ timestamp, base, head },
  rows: [
    { system: "lightcone", load: "64x40", metric: "server CPU", slowdownPct, noisePct: 2 },
    { system: "lightcone", load: "64x40", metric: "operations/s", slowdownPct: 50, noisePct: 2 },
  ],
});

describe("the drift over several gates", () => {
  const gates = [gate("1", "aaa", "bbb", 10), gate("2", "bbb", "ccc", -20)];

  it("is the product of their ratios", () => {
    const [line, ...others] = driftOf(gates);
    expect(others).toEqual([]);
    expect(line?.name).toBe("64x40 lightcone");
    expect(line?.points.map(({ ratio }) => Number(ratio.toFixed(3)))).toEqual([1.1, 0.88]);
    expect(line?.points[1]?.high).toBeCloseTo(0.88 * 1.02, 6);
  });

  it("is drawn with every commit below it, and its last ratio beside it", () => {
    const chart = driftChart(gates);
    for (const text of ["aaa", "bbb", "ccc", "64x40 lightcone: 0.88"]) expect(chart).toContain(text);
  });
});
