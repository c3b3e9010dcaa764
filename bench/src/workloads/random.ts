// The random sources of the workloads besides test-1 (section 14.2): every worker has its own, and all of them come from
// one seed.

/** Draws of 32 bits: mulberry32 with its state wrapped to 32 bits. */
export interface Random {
  u32(): number;
  /** At least 0, below 1. */
  unit(): number;
}

export function rng32(seed: number): Random {
  let state = seed >>> 0;
  const u32 = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let r = Math.imul(state ^ (state >>> 15), state | 1);
    r ^= r + Math.imul(r ^ (r >>> 7), r | 61);
    return (r ^ (r >>> 14)) >>> 0;
  };
  return { u32, unit: () => u32() / 4294967296 };
}

/** Mixes the bits of a number, so that neighbours become strangers. */
export function fmix32(value: number): number {
  let h = value >>> 0;
  h ^= h >>> 16;
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  h ^= h >>> 16;
  return h >>> 0;
}

export const workerSeed = (seed: number, worker: number): number =>
  fmix32(seed + Math.imul(worker, 0x9e3779b9));

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
const charactersPerDraw = 5;

/** A text of `length` characters that depends on nothing but the seed. */
export function value(seed: number, length: number): string {
  const random = rng32(seed);
  let text = "";
  while (text.length < length) {
    let bits = random.u32();
    for (let character = 0; character < charactersPerDraw && text.length < length; character++) {
      text += alphabet[bits & 63];
      bits >>>= 6;
    }
  }
  return text;
}

/** The shares of a mix, in its order; they add up to 1. */
export type Mix<Kind extends string> = readonly (readonly [kind: Kind, share: number])[];

export const mixOf = <Kind extends string>(shares: Partial<Record<Kind, number>>): Mix<Kind> =>
  Object.entries(shares) as [Kind, number][];

/** The first kind whose cumulative share is above `unit`; the last one if rounding left a gap. */
export function kindOf<Kind extends string>(mix: Mix<Kind>, unit: number): Kind {
  let cumulative = 0;
  for (const [kind, share] of mix) {
    cumulative += share;
    if (unit < cumulative) return kind;
  }
  return mix.at(-1)![0];
}
