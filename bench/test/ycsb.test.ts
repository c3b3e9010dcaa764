// The generators of YCSB against the vectors of section 14.2 and 15.2.

import { describe, expect, it } from "vitest";
import { fmix32, kindOf, rng32, value, workerSeed } from "../src/workloads/random";
import {
  fnv64,
  fnv64Remainder,
  InsertCounter,
  keyOf,
  latest,
  onlyAcknowledged,
  scrambledRanks,
  scrambledZipf,
  Zipf,
} from "../src/workloads/ycsb/keys";
import { fieldsOf, type Letter, loadedValue, YcsbState, ycsbGenerator } from "../src/workloads/ycsb/workload";
import { tested, vectors } from "./support/vectors";

interface RandomVectors {
  mulberry32: { seed: number; draws: number[] }[];
  fmix32: { input: number; output: number }[];
  worker_seeds: { seed: number; worker: number; output: number }[];
  loaded_values: { record: number; field: number; text: string }[];
}

interface WorkloadVectors {
  ycsb_keys: { record: number; key: string }[];
  zipf: { items: number; theta: number; zetan: number; eta: number; ranks: { unit: number; rank: number }[] };
  scrambled_zipf: {
    items: number;
    theta: number;
    zetan: number;
    eta: number;
    records: number;
    seed: number;
    worker: number;
    draws: { rank: number; record: number }[];
    shares: { seed: number; draws: number; hottest: number; hottest_10: number; hottest_1000: number };
  };
  latest: { records: number; theta: number; share_newest: number; share_newest_100: number };
  ycsb_a: {
    seed: number;
    worker: number;
    records: number;
    operations: { kind: string; record: number; field?: number; value_seed?: number }[];
  };
}

const randomVectors = vectors<RandomVectors>("09-random.json");
const workloads = vectors<WorkloadVectors>("09-workloads.json");

const state = (letter: Letter, records = 1_000_000) =>
  new YcsbState({ letter, records, operations: 1000, seed: 42, distribution: undefined, theta: 0.99 });

describe("random sources", () => {
  it("mix and seed as the chapter says", () => {
    for (const { input, output } of tested(randomVectors.fmix32)) expect(fmix32(input)).toBe(output);
    for (const { seed, worker, output } of tested(randomVectors.worker_seeds)) {
      expect(workerSeed(seed, worker), `worker ${worker}`).toBe(output);
    }
  });

  // They leave the source of test-1, whose state is a double, only after millions of draws.
  it("wrap their state to 32 bits", () => {
    for (const { seed, draws } of tested(randomVectors.mulberry32)) {
      const random = rng32(seed);
      expect(draws.map(() => random.u32())).toEqual(draws);
    }
  });

  it("make the values that records are loaded with", () => {
    for (const { record, field, text } of tested(randomVectors.loaded_values)) {
      expect(loadedValue(record, field)).toBe(text);
    }
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
    for (const { record, key } of tested(workloads.ycsb_keys)) expect(keyOf(record)).toBe(key);
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
    const { items, theta, zetan, eta, ranks } = workloads.zipf;
    expect(theta).toBe(0.99);
    const zipf = new Zipf(items);
    expect(zipf.zetan).toBeCloseTo(zetan, 10);
    expect(zipf.eta).toBeCloseTo(eta, 10);
    for (const { unit, rank } of tested(ranks)) expect(zipf.rank(unit), `unit ${unit}`).toBe(rank);
  });

  it("Zipf grows to what it would have been", () => {
    const grown = new Zipf(1000);
    grown.grow(5000);
    const made = new Zipf(5000);
    expect(grown.zetan).toBeCloseTo(made.zetan, 10);
    expect(grown.rank(0.7)).toBe(made.rank(0.7));
  });

  it("scrambled Zipf", () => {
    const { items, theta, zetan, eta, records, seed, worker, draws } = workloads.scrambled_zipf;
    expect(new Zipf(items, theta, zetan).eta).toBeCloseTo(eta, 10);
    const ranks = scrambledRanks(records);
    const choose = scrambledZipf(records);
    const ofRanks = rng32(workerSeed(seed, worker));
    const ofRecords = rng32(workerSeed(seed, worker));
    const drawn = draws.map(() => ({ rank: ranks.rank(ofRanks.unit()), record: choose(ofRecords) }));
    expect(drawn).toEqual(draws);
  });

  it("scrambled Zipf has the hot records of the chapter", () => {
    const { records, shares } = workloads.scrambled_zipf;
    const choose = scrambledZipf(records);
    const random = rng32(shares.seed);
    const hits = new Map<number, number>();
    for (let draw = 0; draw < shares.draws; draw++) {
      const record = choose(random);
      hits.set(record, (hits.get(record) ?? 0) + 1);
    }
    const sorted = [...hits.values()].sort((a, b) => b - a);
    const share = (most: number) =>
      sorted.slice(0, most).reduce((sum, count) => sum + count, 0) / shares.draws;
    expect(share(1)).toBeCloseTo(shares.hottest, 3);
    expect(share(10)).toBeCloseTo(shares.hottest_10, 3);
    expect(share(1000)).toBeCloseTo(shares.hottest_1000, 2);
  });

  it("latest prefers the newest, and follows what is acknowledged", () => {
    const { records, share_newest, share_newest_100 } = workloads.latest;
    let last = records - 1;
    const choose = latest(() => last);
    const random = rng32(7);
    const draws = 100_000;
    let newest = 0;
    let newestHundred = 0;
    for (let draw = 0; draw < draws; draw++) {
      const age = last - choose(random);
      if (age === 0) newest++;
      if (age < 100) newestHundred++;
    }
    expect(newest / draws).toBeCloseTo(share_newest, 2);
    expect(newestHundred / draws).toBeCloseTo(share_newest_100, 1);
    last = 1_000_099;
    for (let draw = 0; draw < 1000; draw++) expect(choose(random)).toBeLessThanOrEqual(last);
  });

  it("draw again what is not there yet", () => {
    const choose = onlyAcknowledged(scrambledZipf(2000), () => 999);
    const random = rng32(7);
    for (let draw = 0; draw < 1000; draw++) expect(choose(random)).toBeLessThan(1000);
  });
});

describe("workload A", () => {
  it("begins with the operations of the chapter", () => {
    const { seed, worker, records, operations: expected } = workloads.ycsb_a;
    expect(seed).toBe(42);
    const generator = ycsbGenerator(state("a", records), worker);
    const operations = expected.map(() => generator.next());
    const shown = operations.map(({ kind, record, field, valueSeed: value_seed }) => ({
      kind,
      record,
      field,
      value_seed,
    }));
    // Undefined members count as absent.
    expect(shown).toEqual(expected);
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
    const generator = ycsbGenerator(state(letter, 1000), 1);
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
