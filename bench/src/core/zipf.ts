// Which accounts are chosen how often (section 4.4).

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
