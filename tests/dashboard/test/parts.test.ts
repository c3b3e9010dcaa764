// Parts of the dashboard without a browser: what a hostile module could send, and places of rows among uneven keys.

import { describe, expect, test } from "vitest";
import { jsonText, parseJson } from "../../../dashboard/src/json";
import { parseMetrics, sum } from "../../../dashboard/src/prometheus";
import { Ranks } from "../../../dashboard/src/ranks";
import { cellText, fromUntyped, literal, nameOf, quoted, Types } from "../../../dashboard/src/types";

describe("JSON", () => {
  test("whole numbers keep all their digits", () => {
    const text =
      '{"a":[18446744073709551615,-9223372036854775808,1.5,2],"s":"12345678901234567890 \\"x\\" \\u00e9"}';
    const parsed = parseJson(text);
    expect(parsed).toEqual({
      a: [18446744073709551615n, -9223372036854775808n, 1.5, 2],
      s: '12345678901234567890 "x" é',
    });
    expect(parseJson(jsonText(parsed))).toEqual(parsed);
  });

  test("what is no JSON is refused, and nothing nests without end", () => {
    for (const wrong of [
      "",
      "[1",
      '{"a" 1}',
      "[1,]",
      "1 2",
      "12345678901234567 x",
      "[12345678901234567,,]",
    ]) {
      expect(() => parseJson(wrong), wrong).toThrow();
    }
    expect(() => parseJson(`${"[".repeat(100_000)}12345678901234567`)).toThrow("too deep");
  });

  test("no name reaches the prototype", () => {
    parseJson('{"__proto__":{"polluted":12345678901234567890}}');
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    const types = new Types(null);
    const type = types.of(
      parseJson('{"Product":{"elements":[{"name":{"some":"__proto__"},"algebraic_type":{"U8":[]}}]}}'),
    );
    const value = fromUntyped([7], type);
    expect(Object.getPrototypeOf(value)).toBeNull();
    expect(cellText(value, type)).toBe("{ __proto__: 7 }");
  });
});

describe("types", () => {
  test("one that contains itself, or grows without end, has a short name", () => {
    const ref = (to: number) => ({ name: { some: `f${to}` }, algebraic_type: { Ref: to } });
    const own = new Types({ types: [{ Product: { elements: [ref(0), ref(0)] } }] });
    expect(nameOf(own.of({ Ref: 0 })).length).toBeLessThan(2_000);
    // Each type has a hundred times the next one.
    const wide = Array.from({ length: 40 }, (_, at) => ({
      Product: { elements: Array.from({ length: 100 }, () => ref(at + 1)) },
    }));
    expect(nameOf(new Types({ types: wide }).of({ Ref: 0 })).length).toBeLessThan(2_000);
  });

  test("long values are cut before they are written out", () => {
    const bytes = new Types(null).of({ Array: { U8: [] } });
    expect(cellText(new Uint8Array(50_000_000), bytes).length).toBeLessThan(300);
    expect(cellText("x".repeat(1_000_000), { tag: "String" }).length).toBeLessThan(300);
  });

  test("literals cannot leave their quotes, nor names theirs", () => {
    expect(literal("x'; DELETE FROM y; --", { tag: "String" })).toBe("'x''; DELETE FROM y; --'");
    expect(quoted('a" b')).toBe('"a"" b"');
    for (const wrong of ["1; 2", "1e5", "", "0x10", "--1"])
      expect(() => literal(wrong, { tag: "U64" }), wrong).toThrow();
    expect(() => literal("true OR true", { tag: "Bool" })).toThrow();
    const bytes = new Types(null).of({ Array: { U8: [] } });
    expect(() => literal("ab'", bytes)).toThrow();
  });
});

test("metrics: labels may have anything in them, and buckets are left out", () => {
  const samples = parseMetrics(
    '# HELP a b\na{x="}{ 1"} 2\na{x="y"} 3.5\nb_bucket{le="1"} 9\nc +Inf\nwrong line here\n',
  );
  expect(sum(samples, "a")).toBe(5.5);
  expect(samples.has("b_bucket")).toBe(false);
  expect(sum(samples, "c")).toBe(0);
});

describe("places of rows", () => {
  const spreads: [string, number, (at: number) => bigint][] = [
    ["without gaps", 4, (at) => BigInt(at)],
    ["with even gaps", 4, (at) => BigInt(at) * 1_000n],
    ["growing", 20, (at) => BigInt(at) ** 3n],
    ["in clumps", 100, (at) => BigInt(Math.floor(at / 5_000)) * 1_000_000_000_000n + BigInt(at % 5_000)],
    ["negative", 4, (at) => BigInt(at) * 7n - 9_000_000n],
  ];
  test.each(spreads)("keys %s", async (_, most, key) => {
    const total = 60_000;
    const keys = Array.from({ length: total }, (_, at) => key(at));
    let questions = 0;
    const between = (low: bigint, high: bigint) => {
      questions++;
      return keys.filter((one) => one >= low && one < high);
    };
    const ranks = new Ranks({
      ends: async () => [keys[0]!, keys.at(-1)! + 1n],
      count: async (low, high) => between(low, high).length,
      rows: async (low, high, most) =>
        between(low, high)
          .slice(0, most)
          .map((one) => [one]),
    });
    for (const from of [0, 100, 29_900, 30_000, 59_900, 12_300, 4_950, 55_000]) {
      questions = 0;
      const rows = await ranks.rows(from, from + 100, total);
      expect(rows.map(([one]) => one)).toEqual(keys.slice(from, from + 100));
      expect(questions, `questions for ${from}`).toBeLessThanOrEqual(most);
    }
  });
});
