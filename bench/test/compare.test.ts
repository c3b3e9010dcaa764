// The rule of the gate.

import { describe, expect, it } from "vitest";
import { compare, type Round } from "../src/core/compare";
import { conclusionOf, type GateRow } from "../src/gate";

const rounds = (ratios: number[], base = 1000): Round[] =>
  ratios.map((ratio) => ({ base, head: base * ratio }));

describe("the rule of the gate", () => {
  it("calls a clear slowdown slower, whichever way the figure goes", () => {
    expect(compare(rounds([0.8, 0.81, 0.79, 0.8, 0.8]), true, 5).verdict).toBe("slower");
    expect(compare(rounds([1.2, 1.21, 1.19, 1.2, 1.2]), false, 5).verdict).toBe("slower");
    expect(compare(rounds([0.8, 0.8, 0.8]), true, 5).slowdownPct).toBeCloseTo(25, 6);
  });

  it("calls a clear gain faster", () => {
    expect(compare(rounds([1.2, 1.21, 1.19]), true, 5).verdict).toBe("faster");
    expect(compare(rounds([0.8, 0.79, 0.81]), false, 5).verdict).toBe("faster");
  });

  it("does not take noise for a slowdown", () => {
    expect(compare(rounds([0.7, 1.3, 0.8, 1.2, 0.75]), true, 5).verdict).toBe("same");
    // Much slower once: that was something else.
    expect(compare(rounds([1, 1.01, 0.99, 1, 0.5]), true, 5).verdict).toBe("same");
  });

  it("accepts a sure slowdown within the tolerance", () => {
    expect(compare(rounds([0.97, 0.971, 0.969, 0.97]), true, 5).verdict).toBe("same");
    expect(compare(rounds([0.97, 0.971, 0.969, 0.97]), true, 2).verdict).toBe("slower");
  });

  it("is not fooled by a machine that gets slower over the rounds", () => {
    const drifting = [1000, 800, 600, 400].map((base) => ({ base, head: base * 1.001 }));
    expect(compare(drifting, true, 5).verdict).toBe("same");
  });

  it("refuses to judge too little", () => {
    expect(() => compare(rounds([1, 1]), true, 5)).toThrow("at least 3");
    expect(() => compare(rounds([1, 0, 1]), true, 5)).toThrow("without a result");
  });
});

describe("what the gate concludes", () => {
  const rowOf = (ratios: number[]): GateRow => ({
    ...{ system: "lightcone", load: "any", metric: "TPS", rounds: rounds(ratios) },
    ...compare(rounds(ratios), true, 5),
  });

  it("is a failure as soon as one figure is slower", () => {
    const rows = [rowOf([1, 1.01, 0.99]), rowOf([0.8, 0.81, 0.79])];
    expect(conclusionOf(rows, 5)).toEqual({
      lines: ["slower in 1 of 2 figures", expect.stringContaining("`Slower: …`")],
      isSlower: true,
    });
    expect(conclusionOf(rows.slice(0, 1), 5)).toEqual({ lines: ["not slower"], isSlower: false });
  });

  it("is none where a commit has a reason", () => {
    const rows = [rowOf([0.8, 0.81, 0.79])];
    expect(conclusionOf(rows, 5, "checks cost that")).toEqual({
      lines: ["slower in 1 of 1 figures", "accepted: checks cost that"],
      isSlower: false,
    });
  });

  it("is worth little on a noisy machine, and says so", () => {
    const { lines, isSlower } = conclusionOf([rowOf([1, 1.01, 0.99]), rowOf([0.5, 1.3, 0.8])], 5);
    expect(isSlower).toBe(false);
    expect(lines).toEqual([
      expect.stringContaining("warning: in 1 of 2 figures the noise is above the tolerance of 5 %"),
      "not slower",
    ]);
  });
});
