// The random source of test-1 (section 4.3).

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
