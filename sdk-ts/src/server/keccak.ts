// Keccak-256 with the padding of Keccak's authors, for signatures of reducers: computed once for each outbox table.

const LANE = (1n << 64n) - 1n;
const LANES = 25;
const ROUNDS = 24;
/** Bytes that are taken in between two permutations. */
const RATE_BYTES = 136;

const rotated = (lane: bigint, by: number) => ((lane << BigInt(by)) | (lane >> BigInt(64 - by))) & LANE;

/** Lane (x, y) is at x + 5y. */
function permute(lanes: bigint[]): void {
  let feedback = 1;
  for (let round = 0; round < ROUNDS; round += 1) {
    const sums = [0, 1, 2, 3, 4].map((x) =>
      [5, 10, 15, 20].reduce((sum, y) => sum ^ lanes[x + y]!, lanes[x]!),
    );
    for (let at = 0; at < LANES; at += 1) {
      lanes[at]! ^= sums[(at + 4) % 5]! ^ rotated(sums[(at + 1) % 5]!, 1);
    }
    const moved = [...lanes];
    let [x, y] = [1, 0];
    for (let step = 0; step < LANES - 1; step += 1) {
      const from = lanes[x + 5 * y]!;
      [x, y] = [y, (2 * x + 3 * y) % 5];
      moved[x + 5 * y] = rotated(from, (((step + 1) * (step + 2)) / 2) % 64);
    }
    for (let at = 0; at < LANES; at += 1) {
      const row = at - (at % 5);
      lanes[at] = moved[at]! ^ (~moved[row + ((at + 1) % 5)]! & LANE & moved[row + ((at + 2) % 5)]!);
    }
    for (let bit = 0; bit < 7; bit += 1) {
      if (feedback & 1) lanes[0]! ^= 1n << BigInt(2 ** bit - 1);
      feedback = (feedback << 1) ^ (feedback & 0x80 ? 0x171 : 0);
    }
  }
}

/** The hash, 32 bytes. */
export function keccak256(bytes: Uint8Array): Uint8Array {
  const padded = new Uint8Array((Math.floor(bytes.length / RATE_BYTES) + 1) * RATE_BYTES);
  padded.set(bytes);
  padded[bytes.length] = 1;
  padded[padded.length - 1]! |= 0x80;
  const view = new DataView(padded.buffer);
  const lanes = new Array<bigint>(LANES).fill(0n);
  for (let from = 0; from < padded.length; from += RATE_BYTES) {
    for (let at = 0; at < RATE_BYTES / 8; at += 1) lanes[at]! ^= view.getBigUint64(from + 8 * at, true);
    permute(lanes);
  }
  const hash = new DataView(new ArrayBuffer(32));
  for (let at = 0; at < 4; at += 1) hash.setBigUint64(8 * at, lanes[at]!, true);
  return new Uint8Array(hash.buffer);
}
