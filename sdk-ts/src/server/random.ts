import { badValue } from "../core/errors";
import type { Timestamp } from "../core/timestamp";

type SmallIntegers =
  | Uint8ClampedArray
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | Int8Array
  | Int16Array
  | Int32Array;
type LargeIntegers = BigUint64Array | BigInt64Array;

/** Random numbers of a call, from the time of the call: the same call gives the same numbers. Not for secrets. */
export interface Random {
  /** At least 0, less than 1, in 53 bits. */
  (): number;
  /** Fills an array with random integers, and returns it. */
  fill<T extends SmallIntegers | LargeIntegers>(array: T): T;
  /** An integer of 32 bits, not negative. */
  uint32(): number;
  /** From `min` to `max`, both included. */
  integerInRange(min: number, max: number): number;
  /** From `min` to `max`, both included. */
  bigintInRange(min: bigint, max: bigint): bigint;
}

/** Spreads a seed over a state word (SplitMix32). */
function spread(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = state ^ (state >>> 16);
    z = Math.imul(z, 0x21f0aaad);
    z ^= z >>> 15;
    z = Math.imul(z, 0x735a2d97);
    return (z ^ (z >>> 15)) | 0;
  };
}

/** A generator (sfc32) seeded from a time. */
export function makeRandom(seed: Timestamp): Random {
  const micros = BigInt.asUintN(64, seed.__timestamp_micros_since_unix_epoch__);
  const low = spread(Number(micros & 0xffff_ffffn));
  const high = spread(Number(micros >> 32n));
  let a = low() ^ high();
  let b = low();
  let c = high();
  let counter = 1;

  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let round = 0; round < 12; round++) next();

  const next64 = (): bigint => (BigInt(next()) << 32n) | BigInt(next());

  const random = (() => (next() >>> 5) * 2 ** -27 + (next() >>> 6) * 2 ** -53) as Random;

  random.uint32 = next;

  random.fill = (array) => {
    if (array instanceof BigInt64Array || array instanceof BigUint64Array) {
      for (const at of array.keys()) array[at] = next64();
    } else {
      // A clamped array would turn most larger numbers into 255.
      const mask = array instanceof Uint8ClampedArray ? 0xff : -1;
      for (const at of array.keys()) array[at] = next() & mask;
    }
    return array;
  };

  random.bigintInRange = (min, max) => {
    if (min > max) throw badValue(`random.bigintInRange: min ${min} is above max ${max}`);
    const span = max - min + 1n;
    const bits = (max - min).toString(2).length;
    for (;;) {
      let value = 0n;
      for (let got = 0; got < bits; got += 32) value = (value << 32n) | BigInt(next());
      value = BigInt.asUintN(bits, value);
      if (value < span) return min + value;
    }
  };

  random.integerInRange = (min, max) => {
    if (!(min <= max)) throw badValue(`random.integerInRange: min ${min} is above max ${max}`);
    const span = max - min + 1;
    if (span > 0x1_0000_0000) return Number(random.bigintInRange(BigInt(min), BigInt(max)));
    // Numbers above the last whole multiple of the span are drawn again, so that all results are equally likely.
    const limit = 0x1_0000_0000 - (0x1_0000_0000 % span);
    for (;;) {
      const value = next();
      if (value < limit) return min + (value % span);
    }
  };

  return random;
}
