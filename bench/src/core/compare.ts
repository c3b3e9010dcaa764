// The rule of the gate: when is one tree slower than another, and not only at another moment?

import { confidence95, mean } from "./statistics";

/** One round: both trees one after the other, so that a slow moment of the machine hits both. */
export interface Round {
  base: number;
  head: number;
}

export interface Comparison {
  /** Mean slowdown in percent: above 0, head is worse. */
  slowdownPct: number;
  /** Half the width of its 95 % interval, in percent. */
  noisePct: number;
  verdict: "slower" | "faster" | "same";
}

export const roundsLeast = 3;

/**
 * Head is slower if its mean slowdown over the rounds is above the tolerance, and the 95 % interval of that mean (Student's
 * t over the logarithms of the ratios, round by round) does not reach down to 0. Faster is the same the other way round.
 */
export function compare(rounds: readonly Round[], higherIsBetter: boolean, tolerancePct: number): Comparison {
  if (rounds.length < roundsLeast)
    throw new Error(`${rounds.length} rounds say nothing; at least ${roundsLeast}`);
  for (const { base, head } of rounds) {
    if (!(base > 0 && head > 0)) throw new Error(`a round without a result: base ${base}, head ${head}`);
  }
  const logs = rounds.map(({ base, head }) => Math.log(higherIsBetter ? base / head : head / base));
  const middle = mean(logs);
  const noise = confidence95(logs) ?? Number.POSITIVE_INFINITY;
  const slowdownPct = (Math.exp(middle) - 1) * 100;
  const isSure = Math.abs(middle) > noise;
  const isMuch = Math.abs(slowdownPct) > tolerancePct;
  const verdict = !isSure || !isMuch ? "same" : middle > 0 ? "slower" : "faster";
  return { slowdownPct, noisePct: (Math.exp(noise) - 1) * 100, verdict };
}
