// Random source, sampler, pairs and histogram against the vectors of chapter 09, sections 4.3 to 5.7.

import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { CollisionTracker } from "../src/core/collision_tracker";
import { LatencyHistogram } from "../src/core/histogram";
import { makePairs, type Pairs, startOfWorker } from "../src/core/pairs";
import { mulberry32, transferSeed } from "../src/core/random";
import { zipfCdf } from "../src/core/zipf";

const accounts = 100_000;

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

const text = (pairs: Pairs, index: number) => `${pairs.from[index]}>${pairs.to[index]}`;

describe("random source", () => {
  it("draws the numbers of the chapter", () => {
    expect(draws(transferSeed, 8)).toEqual([
      455919406, 4042750857, 4036713555, 1004527575, 3885174651, 3342903291, 1200158424, 1464636653,
    ]);
    expect(draws(1, 4)).toEqual([2693262067, 11749833, 2265367787, 4213581821]);
  });
});

describe("Zipf distribution", () => {
  it.each([
    [0.5, 0.0015847941946957927, 0.007957248322378789, 0.02946069622321263],
    [0.99, 0.07825743810383679, 0.2313374010015965, 0.4143393926080019],
    [1, 0.08271198621246906, 0.2422607818389818, 0.42905829771788023],
    [1.5, 0.38372237274836374, 0.765655253657974, 0.9258737742976597],
    [2, 0.6079307976116269, 0.9421515329208365, 0.9939570665215706],
  ])("has the shares of the chapter at alpha %d", (alpha, first, ten, hundred) => {
    const cdf = zipfCdf(accounts, alpha);
    expect([cdf[0], cdf[9], cdf[99]]).toEqual([first, ten, hundred]);
    expect(cdf[accounts - 1]).toBe(1);
  });

  it("stays exact beyond 100,000 accounts", () => {
    expect(zipfCdf(200_000, 1.5)[0]).toBeCloseTo(0.3834, 4);
  });
});

describe("pairs", () => {
  it.each([
    [
      0,
      "10615>94127 93987>23388 90458>77833 27943>34101 19990>35710 36982>65305 61231>84748 26289>30683 43257>18641 27501>36868",
    ],
    [
      0.5,
      "1170>88625 88361>5552 81867>60659 7901>11732 4070>12858 13784>42752 37601>71882 7000>9512 18825>3544 7654>13699",
    ],
    [1, "1>49165 48336>8 31551>6855 15>34 5>41 48>1507 920>15818 12>22 104>4 15>47"],
    [1.5, "0>157 150>0 61>11 0>4 3>24 0>1 0>2 3>35 73>10 0>1"],
    [2, "0>9 9>0 5>2 0>1 1>3 0>4 6>2 0>1 0>1 0>1"],
  ])("begins as in the chapter at alpha %d", (alpha, expected) => {
    const pairs = makePairs(10, accounts, alpha);
    expect(Array.from({ length: 10 }, (_, i) => text(pairs, i)).join(" ")).toBe(expected);
  });

  it.each([
    [0, "a8bbc9a7030d852810fbfafeb98b561855bf80dd329d81309726d6df3056b203", "35907>48131"],
    [0.5, "d902cf41dc210f944729fce2b7b8283d6245ce93e7d008237df3d8fc3befd343", undefined],
    [1, "94e2adf759bd437e62c8aa1c807b1e10f4cbd7d6ac84e6da949968961aaed059", undefined],
    [1.5, "1911e612d5976ad9bcf0545021bea21ac0228829af85de6e73d0a6618fa01499", "1>33"],
  ])("is the sequence of the chapter over 1,000,000 at alpha %d", (alpha, sha256, secondWorker) => {
    const pairs = makePairs(1_000_000, accounts, alpha);
    expect(hash(pairs, 1_000_000)).toBe(sha256);
    if (secondWorker) expect(text(pairs, 156_250)).toBe(secondWorker);
  });

  it.each([
    [0, "54223fb50e369f9a7f36425ae5bc975c682b8fc813019b82c814afaec534f892", "47253>15353"],
    [1.5, "c6959da74ee25161e06e9afc6f67854102cb8e31d551ec40fd843a59da9eb060", "4>0"],
  ])("does not wrap its state: all 10,000,000 at alpha %d", (alpha, sha256, final) => {
    const pairs = makePairs(10_000_000, accounts, alpha);
    expect(hash(pairs, 10_000_000)).toBe(sha256);
    expect(text(pairs, 9_999_999)).toBe(final);
  });

  it("gives each worker a start of its own", () => {
    expect(startOfWorker(1, 64, 10_000_000)).toBe(156_250);
    expect(startOfWorker(3, 64, 10)).toBe(3);
    expect(startOfWorker(12, 64, 10)).toBe(2);
  });

  it("gives up after 32 redraws where there is nothing else to draw", () => {
    expect(text(makePairs(1, 1, 1.5), 0)).toBe("0>0");
  });
});

describe("histogram", () => {
  const p50 = (value: number) => {
    const histogram = new LatencyHistogram();
    histogram.recordMicroseconds(value);
    return Math.round(histogram.percentile(50) * 1000);
  };

  it.each([
    [1, 1],
    [999, 999],
    [2047, 2047],
    [2048, 2049],
    [4096, 4099],
    [7390, 7391],
    [12345, 12351],
    [100000, 100031],
    [1234567, 1234943],
  ])("answers the highest value of the bucket of %d", (value, expected) => {
    expect(p50(value)).toBe(expected);
  });

  it("has the percentiles of the chapter", () => {
    const linear = new LatencyHistogram();
    for (let value = 1; value <= 10_000; value++) linear.recordMicroseconds(value);
    expect([50, 95, 99, 99.9].map((p) => linear.percentile(p))).toEqual([5.003, 9.503, 9.903, 9.991]);
    const square = new LatencyHistogram();
    for (let i = 1; i <= 100; i++) square.recordMicroseconds(10 * i * i);
    expect([50, 95, 99].map((p) => square.percentile(p))).toEqual([25.007, 90.303, 98.047]);
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

  it.each([
    [1.5, 64, 0.799],
    [1.5, 2560, 0.943],
    [1, 64, 0.286],
    [0, 2560, 0.05],
  ])("has the rate of the chapter at alpha %d with %d in flight", (alpha, inFlight, expected) => {
    const pairs = makePairs(300_000, accounts, alpha);
    const tracker = new CollisionTracker(accounts);
    for (let i = 0; i < pairs.length; i++) {
      if (i >= inFlight) {
        tracker.end(pairs.from[i - inFlight]!);
        tracker.end(pairs.to[i - inFlight]!);
      }
      tracker.begin(pairs.from[i]!);
      tracker.begin(pairs.to[i]!);
    }
    expect(tracker.rate).toBeCloseTo(expected, 2);
  });
});
