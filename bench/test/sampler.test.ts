// Random source, sampler, pairs and histogram against the vectors of chapter 09, sections 4.3 to 5.7.

import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { CollisionTracker } from "../src/core/collision_tracker";
import { LatencyHistogram } from "../src/core/histogram";
import { mulberry32, transferSeed } from "../src/core/random";
import { zipfCdf } from "../src/core/zipf";
import { rng32 } from "../src/workloads/random";
import { makePairs, type Pairs, startOfWorker } from "../src/workloads/transfers/pairs";
import { decimalsOf, tested, vectors } from "./support/vectors";

interface RandomVectors {
  mulberry32: { name: string; seed: number; draws: number[] }[];
  mulberry32_states: { first_different_draw: number };
}

interface SamplerVectors {
  accounts: number;
  distributions: {
    alpha: number;
    harmonic?: number;
    cdf_0?: number;
    cdf_9?: number;
    cdf_99?: number;
    share_rank_0: number;
    share_top_10: number;
    share_top_100: number;
  }[];
  collision_rates: { alpha: number; in_flight: number; rate: number }[];
  rejection_sampler_of_the_reference: { accounts: number; alpha: number; rank: number; exact: number }[];
}

type Pair = [from: number, to: number];

interface PairVectors {
  accounts: number;
  first_ten: { alpha: number; pairs: Pair[] }[];
  first_million: { alpha: number; sha256: string }[];
  all_ten_million: { alpha: number; state: "double" | "wrapped"; sha256: string; last: Pair }[];
  at: { alpha: number; index: number; pair: Pair }[];
  worker_starts: { worker: number; workers: number; pairs: number; index: number }[];
}

interface HistogramVectors {
  single_values: { value: number; p50: number }[];
  histograms: {
    name: string;
    values: { from?: number; to?: number; ten_times_squares_to?: number };
    p50: number;
    p95: number;
    p99: number;
    p99_9?: number;
  }[];
}

const randomVectors = vectors<RandomVectors>("09-random.json");
const samplerVectors = vectors<SamplerVectors>("09-sampler.json");
const pairVectors = vectors<PairVectors>("09-pairs.json");
const histogramVectors = vectors<HistogramVectors>("09-statistics.json");

const { accounts } = pairVectors;

const draws = (seed: number, count: number) => {
  const random = mulberry32(seed);
  return Array.from({ length: count }, () => random() * 2 ** 32);
};

const hash = (pairs: Pairs, count: number) => {
  const both = new Uint32Array(2 * count);
  for (let i = 0; i < count; i++) {
    both[2 * i] = pairs.from[i]!;
    both[2 * i + 1] = pairs.to[i]!;
  }
  return createHash("sha256").update(both).digest("hex");
};

const pairAt = (pairs: Pairs, index: number): Pair => [pairs.from[index]!, pairs.to[index]!];

describe("random source", () => {
  it.each(tested(randomVectors.mulberry32))(
    "draws the numbers of the chapter: $name",
    ({ seed, draws: expected }) => {
      expect(draws(seed, expected.length)).toEqual(expected);
    },
  );

  it("leaves a source with a wrapped state where the chapter says", () => {
    const double = mulberry32(transferSeed);
    const wrapped = rng32(transferSeed);
    let draw = 1;
    while (double() === wrapped.unit()) draw++;
    expect(draw).toBe(randomVectors.mulberry32_states.first_different_draw);
  });
});

/** The share of the endpoints that is on the accounts of the lowest ranks. */
const shareOf = (pairs: Pairs, ranks: number) => {
  let hits = 0;
  for (let i = 0; i < pairs.length; i++) {
    if (pairs.from[i]! < ranks) hits++;
    if (pairs.to[i]! < ranks) hits++;
  }
  return hits / (2 * pairs.length);
};

const expectRounded = (value: number, expected: number) =>
  expect(Math.abs(value - expected)).toBeLessThanOrEqual(0.5001 * 10 ** -decimalsOf(expected));

describe("Zipf distribution", () => {
  it.each(tested(samplerVectors.distributions))(
    "has the figures of the chapter at alpha $alpha",
    (expected) => {
      const { alpha } = expected;
      if (alpha > 0) {
        const cdf = zipfCdf(samplerVectors.accounts, alpha);
        expect([cdf[0], cdf[9], cdf[99]]).toEqual([expected.cdf_0, expected.cdf_9, expected.cdf_99]);
        expect(cdf[samplerVectors.accounts - 1]).toBe(1);
        expect(1 / cdf[0]!).toBeCloseTo(expected.harmonic!, 9);
      }
      const pairs = makePairs(1_000_000, samplerVectors.accounts, alpha);
      expectRounded(shareOf(pairs, 1), expected.share_rank_0);
      expectRounded(shareOf(pairs, 10), expected.share_top_10);
      expectRounded(shareOf(pairs, 100), expected.share_top_100);
    },
  );

  // The reference draws with the wrong frequencies there; this suite does not.
  it.each(tested(samplerVectors.rejection_sampler_of_the_reference))(
    "stays exact with $accounts accounts, alpha $alpha, rank $rank",
    ({ accounts, alpha, rank, exact }) => {
      const cdf = zipfCdf(accounts, alpha);
      expectRounded(cdf[rank]! - (rank === 0 ? 0 : cdf[rank - 1]!), exact);
    },
  );
});

describe("pairs", () => {
  it.each(tested(pairVectors.first_ten))(
    "begins as in the chapter at alpha $alpha",
    ({ alpha, pairs: expected }) => {
      const pairs = makePairs(expected.length, accounts, alpha);
      expect(expected.map((_, index) => pairAt(pairs, index))).toEqual(expected);
    },
  );

  it.each(tested(pairVectors.first_million))(
    "is the sequence of the chapter over 1,000,000 at alpha $alpha",
    ({ alpha, sha256 }) => {
      expect(hash(makePairs(1_000_000, accounts, alpha), 1_000_000)).toBe(sha256);
    },
  );

  it.each(tested(pairVectors.at))(
    "has the pair of the chapter at alpha $alpha, $index",
    ({ alpha, index, pair }) => {
      expect(pairAt(makePairs(index + 1, accounts, alpha), index)).toEqual(pair);
    },
  );

  it.each(tested(pairVectors.all_ten_million))(
    "is the sequence of the chapter over 10,000,000 at alpha $alpha, with a $state state",
    ({ alpha, state, sha256, last }) => {
      const random = state === "double" ? undefined : rng32(transferSeed).unit;
      const pairs = makePairs(10_000_000, accounts, alpha, random);
      expect(hash(pairs, 10_000_000)).toBe(sha256);
      expect(pairAt(pairs, 9_999_999)).toEqual(last);
    },
  );

  it("gives each worker a start of its own", () => {
    for (const { worker, workers, pairs, index } of tested(pairVectors.worker_starts)) {
      expect(startOfWorker(worker, workers, pairs)).toBe(index);
    }
    expect(startOfWorker(3, 64, 10)).toBe(3);
    expect(startOfWorker(12, 64, 10)).toBe(2);
  });

  it("gives up after 32 redraws where there is nothing else to draw", () => {
    expect(pairAt(makePairs(1, 1, 1.5), 0)).toEqual([0, 0]);
  });
});

describe("histogram", () => {
  const p50 = (value: number) => {
    const histogram = new LatencyHistogram();
    histogram.recordMicroseconds(value);
    return Math.round(histogram.percentile(50) * 1000);
  };

  it.each(tested(histogramVectors.single_values))("answers $p50 for $value", ({ value, p50: expected }) => {
    expect(p50(value)).toBe(expected);
  });

  it.each(tested(histogramVectors.histograms))("has the percentiles of the chapter: $name", (expected) => {
    const { from, to, ten_times_squares_to } = expected.values;
    const histogram = new LatencyHistogram();
    if (ten_times_squares_to) {
      for (let i = 1; i <= ten_times_squares_to; i++) histogram.recordMicroseconds(10 * i * i);
    } else {
      for (let value = from!; value <= to!; value++) histogram.recordMicroseconds(value);
    }
    const microseconds = (p: number) => Math.round(histogram.percentile(p) * 1000);
    expect([50, 95, 99].map(microseconds)).toEqual([expected.p50, expected.p95, expected.p99]);
    if (expected.p99_9) expect(microseconds(99.9)).toBe(expected.p99_9);
  });

  it("is 0 where nothing was recorded, adds others, and keeps an exact mean", () => {
    const sum = new LatencyHistogram();
    expect(sum.summary()).toEqual({ p50_ms: 0, p95_ms: 0, p99_ms: 0, p999_ms: 0, max_ms: 0, mean_ms: 0 });
    const part = new LatencyHistogram();
    part.record(0.0001);
    part.record(12.345);
    sum.add(part);
    sum.add(part);
    expect(sum.count).toBe(4);
    expect(sum.summary().mean_ms).toBe((0.001 + 12.345) / 2);
    part.record(1e12);
    expect(part.count).toBe(3);
  });
});

describe("collisions", () => {
  it("counts a begin on an account that is in flight", () => {
    const tracker = new CollisionTracker(10);
    expect(tracker.rate).toBe(0);
    for (const account of [1, 2, 2, 3]) tracker.begin(account);
    tracker.end(2);
    tracker.end(2);
    tracker.begin(2);
    expect([tracker.ops, tracker.collisions, tracker.rate]).toEqual([5, 1, 0.2]);
  });

  it.each(tested(samplerVectors.collision_rates))(
    "has the rate of the chapter at alpha $alpha with $in_flight in flight",
    ({ alpha, in_flight, rate }) => {
      const pairs = makePairs(1_000_000, samplerVectors.accounts, alpha);
      const tracker = new CollisionTracker(samplerVectors.accounts);
      for (let i = 0; i < pairs.length; i++) {
        if (i >= in_flight) {
          tracker.end(pairs.from[i - in_flight]!);
          tracker.end(pairs.to[i - in_flight]!);
        }
        tracker.begin(pairs.from[i]!);
        tracker.begin(pairs.to[i]!);
      }
      // The part of the sequence that is drawn decides on the last digit.
      expect(Math.abs(tracker.rate - rate)).toBeLessThan(10 ** -decimalsOf(rate));
    },
  );
});
