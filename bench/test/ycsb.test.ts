// The generators of YCSB against the vectors of section 14.2 and 15.2.

import { describe, expect, it } from "vitest";
import { fmix32, kindOf, rng32, value, workerSeed } from "../src/workloads/random";
import {
  fnv64,
  fnv64Remainder,
  InsertCounter,
  keyOf,
  Latest,
  OnlyAcknowledged,
  ScrambledZipf,
  Zipf,
} from "../src/workloads/ycsb/keys";
import { fieldsOf, type Letter, loadedValue, YcsbGenerator, YcsbState } from "../src/workloads/ycsb/workload";

const state = (letter: Letter, records = 1_000_000) =>
  new YcsbState({ letter, records, operations: 1000, seed: 42, distribution: undefined, theta: 0.99 });

describe("random sources", () => {
  it("mix and seed as the chapter says", () => {
    expect([0, 1, 42, 0xffffffff].map(fmix32)).toEqual([0, 1364076727, 142593372, 2180083513]);
    expect([0, 1, 2, 63].map((worker) => workerSeed(42, worker))).toEqual([
      142593372, 939911724, 3948730756, 122855156,
    ]);
  });

  it("wrap their state to 32 bits", () => {
    const random = rng32(1);
    expect([random.u32(), random.u32(), random.u32(), random.u32()]).toEqual([
      2693262067, 11749833, 2265367787, 4213581821,
    ]);
  });

  it("make the values that records are loaded with", () => {
    expect(loadedValue(0, 0)).toBe(
      "cycE9JOP4-ERi26tjSTS7dvBd8bhYRK6QCz3OgToLJDgbZisv-pYhCVqfn8d2dYuF8UwjiW6FCujofs_ABLyyNm5X-is3IxCOCoe",
    );
    expect(loadedValue(999_999, 9)).toBe(
      "tbtVUYiwgTsWh6jZ9yKP1O9ZjAEIn08eFrnJ4cAv5JE6chNDmA1NVt0IhfLqKcpSFLL93UzKdPe-egdfx7EeQ4cLZ2Snf8dORa5D",
    );
    expect(value(7, 3)).toHaveLength(3);
  });

  it("choose kinds by cumulative shares", () => {
    const mix = [
      ["first", 0.25],
      ["second", 0.75],
    ] as const;
    expect([0, 0.2499, 0.25, 0.9999].map((unit) => kindOf(mix, unit))).toEqual([
      "first",
      "first",
      "second",
      "second",
    ]);
  });
});

describe("keys", () => {
  it("have the names of stock YCSB", () => {
    expect([0, 1, 2, 999_999].map(keyOf)).toEqual([
      "user6284781860667377211",
      "user8517097267634966620",
      "user1820151046732198393",
      "user2744965632448235251",
    ]);
  });

  it("are hashed like 64-bit integers", () => {
    const slow = (record: number) => {
      let hash = 0xcbf29ce484222325n;
      for (let byte = 0n; byte < 8n; byte++) {
        hash = ((hash ^ ((BigInt(record) >> (8n * byte)) & 0xffn)) * 1099511628211n) % (1n << 64n);
      }
      return hash >> 63n ? (1n << 64n) - hash : hash;
    };
    const random = rng32(3);
    for (let index = 0; index < 2000; index++) {
      const record = random.u32() * (index % 2 === 0 ? 1 : 4096);
      expect(fnv64(record)).toBe(slow(record));
      for (const records of [1, 10_000, 1_000_000, 100_000_000]) {
        expect(fnv64Remainder(record, records)).toBe(Number(slow(record) % BigInt(records)));
      }
    }
  });
});

describe("distributions", () => {
  it("Zipf", () => {
    const zipf = new Zipf(1_000_000);
    expect(zipf.zetan).toBeCloseTo(15.391849746037371, 10);
    expect(zipf.eta).toBeCloseTo(0.1362913333941101, 10);
    expect([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99].map((unit) => zipf.rank(unit))).toEqual([
      0, 2, 20, 860, 31220, 253526, 872507,
    ]);
  });

  it("Zipf grows to what it would have been", () => {
    const grown = new Zipf(1000);
    grown.grow(5000);
    const made = new Zipf(5000);
    expect(grown.zetan).toBeCloseTo(made.zetan, 10);
    expect(grown.rank(0.7)).toBe(made.rank(0.7));
  });

  it("scrambled Zipf", () => {
    const chooser = new ScrambledZipf(1_000_000);
    const ranks = rng32(workerSeed(42, 0));
    const records = rng32(workerSeed(42, 0));
    const drawn = Array.from({ length: 8 }, () => [chooser.rank(ranks.unit()), chooser.next(records)]);
    expect(drawn).toEqual([
      [98752, 210525],
      [151674, 21891],
      [2, 198393],
      [9558, 126780],
      [3040080216, 393406],
      [1949, 101899],
      [75223, 422136],
      [0, 377211],
    ]);
  });

  it("scrambled Zipf has the hot records of the chapter", () => {
    const draws = 1_000_000;
    const chooser = new ScrambledZipf(1_000_000);
    const random = rng32(7);
    const hits = new Map<number, number>();
    for (let draw = 0; draw < draws; draw++) {
      const record = chooser.next(random);
      hits.set(record, (hits.get(record) ?? 0) + 1);
    }
    const sorted = [...hits.values()].sort((a, b) => b - a);
    const share = (most: number) => sorted.slice(0, most).reduce((sum, count) => sum + count, 0) / draws;
    expect(share(1)).toBeCloseTo(0.0381, 3);
    expect(share(10)).toBeCloseTo(0.119, 3);
    expect(share(1000)).toBeCloseTo(0.3, 2);
  });

  it("latest prefers the newest, and follows what is acknowledged", () => {
    let last = 999_999;
    const chooser = new Latest(() => last);
    const random = rng32(7);
    const draws = 100_000;
    let newest = 0;
    let newestHundred = 0;
    for (let draw = 0; draw < draws; draw++) {
      const age = last - chooser.next(random);
      if (age === 0) newest++;
      if (age < 100) newestHundred++;
    }
    expect(newest / draws).toBeCloseTo(0.065, 2);
    expect(newestHundred / draws).toBeCloseTo(0.35, 1);
    last = 1_000_099;
    for (let draw = 0; draw < 1000; draw++) expect(chooser.next(random)).toBeLessThanOrEqual(last);
  });

  it("draw again what is not there yet", () => {
    const chooser = new OnlyAcknowledged(new ScrambledZipf(2000), () => 999);
    const random = rng32(7);
    for (let draw = 0; draw < 1000; draw++) expect(chooser.next(random)).toBeLessThan(1000);
  });
});

describe("workload A", () => {
  it("begins with the operations of the chapter", () => {
    const generator = new YcsbGenerator(state("a"), 0);
    const operations = Array.from({ length: 8 }, () => generator.next());
    expect(operations.map(({ kind, record, field, valueSeed }) => [kind, record, field, valueSeed])).toEqual([
      ["read", 21891, undefined, undefined],
      ["read", 126780, undefined, undefined],
      ["update", 101899, 4, 410470],
      ["update", 538742, 6, 2630799827],
      ["update", 474689, 3, 1625067700],
      ["read", 787802, undefined, undefined],
      ["update", 377211, 7, 3627929417],
      ["update", 677613, 9, 2980464579],
    ]);
    expect(operations[2]!.args).toEqual({ key: keyOf(101899), field: 4, value: value(410470, 100) });
  });
});

describe("the mixes", () => {
  it.each([
    ["a", { read: 0.5, update: 0.5 }],
    ["b", { read: 0.95, update: 0.05 }],
    ["c", { read: 1 }],
    ["d", { read: 0.95, insert: 0.05 }],
    ["e", { scan: 0.95, insert: 0.05 }],
    ["f", { read: 0.5, rmw: 0.5 }],
  ] as const)("%s", (letter, shares) => {
    const generator = new YcsbGenerator(state(letter, 1000), 1);
    const counts: Record<string, number> = {};
    const draws = 20_000;
    for (let draw = 0; draw < draws; draw++) {
      const operation = generator.next();
      counts[operation.kind] = (counts[operation.kind] ?? 0) + 1;
      if (operation.kind === "scan") {
        expect(operation.args["count"]).toBeGreaterThanOrEqual(1);
        expect(operation.args["count"]).toBeLessThanOrEqual(100);
      }
      generator.ended(operation, { ok: true });
    }
    expect(Object.keys(counts).sort()).toEqual(Object.keys(shares).sort());
    for (const [kind, share] of Object.entries(shares)) expect(counts[kind]! / draws).toBeCloseTo(share, 1);
  });
});

describe("inserts", () => {
  it("are acknowledged once all before them are", () => {
    const counter = new InsertCounter(10);
    const [first, second, third] = [counter.take(), counter.take(), counter.take()];
    expect([first, second, third]).toEqual([10, 11, 12]);
    counter.acknowledge(third!);
    expect(counter.last).toBe(9);
    counter.acknowledge(first!);
    expect(counter.last).toBe(10);
    counter.acknowledge(second!);
    expect(counter.last).toBe(12);
    expect(counter.acknowledgedInserts).toBe(3);
  });
});

describe("what fields must hold", () => {
  it("is known after one acknowledged write, and not after two or a failed one", () => {
    const { written } = state("a");
    written.note(1, 2, 77);
    expect(written.expected(1, 2, loadedValue)).toBe(value(77, 100));
    expect(written.expected(1, 3, loadedValue)).toBe(loadedValue(1, 3));
    written.note(1, 2, 78);
    expect(written.expected(1, 2, loadedValue)).toBeUndefined();
    written.note(4, 0, undefined);
    expect(written.expected(4, 0, loadedValue)).toBeUndefined();
    expect(written.sample(10)).toEqual([1, 4]);
  });

  it("is read from a row by the names of its columns", () => {
    const row = Object.fromEntries(Array.from({ length: 10 }, (_, field) => [`field${field}`, `v${field}`]));
    expect(fieldsOf({ ycsb_key: "user1", ...row })[9]).toBe("v9");
  });
});
