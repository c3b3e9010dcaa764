// The sequence of transfers: the same for every connector and every run (sections 4.3 to 4.5).

export const transferSeed = 0x12345678;

/**
 * mulberry32 with its state in a double that never wraps: the same stream as the wrapped generator as long as the state is
 * below 2^53, and the stream of the published suite beyond. Each call gives a number of at least 0 and below 1.
 */
export function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state += 0x6d2b79f5;
    let r = Math.imul(state ^ (state >>> 15), state | 1);
    r ^= r + Math.imul(r ^ (r >>> 7), r | 61);
    return ((r ^ (r >>> 14)) >>> 0) / 4294967296;
  };
}

/** The cumulative distribution of a Zipf law over `n` ranks, summed with Kahan's compensation; the last entry is 1. */
export function zipfCdf(n: number, alpha: number): Float64Array {
  let sum = 0;
  let lost = 0;
  for (let k = 1; k <= n; k++) {
    const term = 1 / k ** alpha - lost;
    const next = sum + term;
    lost = next - sum - term;
    sum = next;
  }
  const harmonic = sum;
  const cdf = new Float64Array(n);
  sum = 0;
  lost = 0;
  for (let i = 0; i < n; i++) {
    const term = 1 / (i + 1) ** alpha / harmonic - lost;
    const next = sum + term;
    lost = next - sum - term;
    sum = next;
    cdf[i] = sum;
  }
  cdf[n - 1] = 1;
  return cdf;
}

/** Ranks 0 to n-1, rank 0 the most frequent: exact by the inverse of the distribution, for every n. */
export function zipfSampler(n: number, alpha: number, random: () => number): () => number {
  if (alpha <= 0) return () => Math.floor(random() * n);
  const cdf = zipfCdf(n, alpha);
  return () => {
    const u = random();
    let low = 0;
    let high = n - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (cdf[middle]! < u) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

export interface Pairs {
  from: Uint32Array;
  to: Uint32Array;
  length: number;
}

/** How often the second account is drawn again when it equals the first. */
const redrawsMax = 32;

export function makePairs(
  count: number,
  accounts: number,
  alpha: number,
  random = mulberry32(transferSeed),
): Pairs {
  const pick = zipfSampler(accounts, alpha, random);
  const from = new Uint32Array(count);
  const to = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    const a = pick();
    let b = pick();
    for (let redraws = 0; b === a && redraws < redrawsMax; redraws++) b = pick();
    from[i] = a;
    to[i] = b;
  }
  return { from, to, length: count };
}

/** Where a worker starts in the sequence. It goes on from there, not only within its part, and wraps at the end. */
export const startOfWorker = (worker: number, workers: number, pairs: number): number =>
  (worker * Math.max(1, Math.floor(pairs / workers))) % pairs;

let last: { key: string; pairs: Pairs } | undefined;

/** `makePairs`, remembering the last sequence: several connectors run on the same one. */
export function pairsOf(count: number, accounts: number, alpha: number): Pairs {
  const key = `${count} ${accounts} ${alpha}`;
  if (last?.key !== key) last = { key, pairs: makePairs(count, accounts, alpha) };
  return last.pairs;
}
