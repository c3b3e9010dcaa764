// The sequence of transfers: the same for every connector and every run (section 4.5).

import { mulberry32, transferSeed } from "../../core/random";
import { zipfSampler } from "../../core/zipf";

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
