// What the demo shows (chapter 09, section 7).

import { describe, expect, it } from "vitest";
import { barOf, box, ranked, verdictOf } from "../src/report/demo_display";

const results = [
  { system: "slow", tps: 10 },
  { system: "broken", tps: 0 },
  { system: "fast", tps: 256 },
];

describe("the demo", () => {
  it("has bars of 40 cells, at least one of them filled", () => {
    expect(barOf(256, 256)).toBe("█".repeat(40));
    expect(barOf(128, 256)).toBe("█".repeat(20) + "░".repeat(20));
    expect(barOf(1, 1e6)).toBe("█" + "░".repeat(39));
  });

  it("ranks what has a result, and leaves out what failed", () => {
    expect(ranked(results).map(({ system }) => system)).toEqual(["fast", "slow"]);
    expect(verdictOf(results)).toBe("fast is 26x faster than slow");
    expect(verdictOf(results.slice(0, 2))).toBeUndefined();
    expect(verdictOf([])).toBeUndefined();
  });

  it("draws boxes of 60 columns", () => {
    expect(
      box(["text"])
        .split("\n")
        .map((line) => line.length),
    ).toEqual([60, 60, 60]);
  });
});
