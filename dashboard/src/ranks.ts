// Which rows are at which places of a large table that is ordered by whole numbers. The server finds rows by their keys at once, and
// not by their places; so keys are guessed, the rows before them are counted, and a few guesses later the place is found.

export interface Keys {
  /** The lowest key, and the one behind the highest; undefined if there are no rows. */
  ends: () => Promise<[low: bigint, high: bigint] | undefined>;
  /** How many rows have a key from `low` on and below `high`. */
  count: (low: bigint, high: bigint) => Promise<number>;
  /** Those rows, in order; at most so many, and then any of them. */
  rows: (low: bigint, high: bigint, most: number) => Promise<unknown[][]>;
}

interface Anchor {
  rank: number;
  key: bigint;
}

/** Rows before the place that are read with it, rather than counted once more. */
const NEAR_ROWS = 400;
const GUESSES_MAX = 96;
const SPANS_MAX = 80;
const READ_ROWS_MAX = 5_000;
const ANCHORS_MAX = 256;

export class Ranks {
  readonly #keys: Keys;
  #anchors: Anchor[] = [];

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  /** What is known is not true any more. */
  forget(): void {
    this.#anchors = [];
  }

  /** The rows at the places from `from` on and below `to`, of `total`. */
  async rows(from: number, to: number, total: number): Promise<unknown[][]> {
    if (this.#anchors.length === 0) {
      const ends = await this.#keys.ends();
      if (!ends) return [];
      this.#anchors = [
        { rank: 0, key: ends[0] },
        { rank: total, key: ends[1] },
      ];
    }
    await this.#approach(from);
    return this.#read(from, to);
  }

  #around(rank: number): [Anchor, Anchor] {
    const above = this.#anchors.findIndex((anchor, at) => at > 0 && anchor.rank > rank);
    const at = above < 0 ? this.#anchors.length - 1 : above;
    return [this.#anchors[at - 1]!, this.#anchors[at]!];
  }

  /** Finds anchors until one is near. */
  async #approach(rank: number): Promise<void> {
    for (let guess = 0; guess < GUESSES_MAX; guess++) {
      const [below, above] = this.#around(rank);
      if (rank - below.rank <= NEAR_ROWS || above.key - below.key <= 1n) return;
      const wanted = rank - NEAR_ROWS / 2 - below.rank;
      // Every second guess halves, for keys that are spread unevenly.
      const part =
        guess % 2 === 1
          ? (above.key - below.key) / 2n
          : portion(above.key - below.key, wanted, above.rank - below.rank);
      const key = below.key + (part > 0n ? part : 1n);
      if (key >= above.key) return;
      const count = await this.#keys.count(below.key, key);
      this.#add({ rank: below.rank + count, key });
    }
  }

  #add(anchor: Anchor): void {
    if (this.#anchors.length >= ANCHORS_MAX) this.#anchors.splice(1, this.#anchors.length - 2);
    const at = this.#anchors.findIndex(({ key }) => key > anchor.key);
    this.#anchors.splice(at, 0, anchor);
  }

  async #read(from: number, to: number): Promise<unknown[][]> {
    const [below, above] = this.#around(from);
    const end = this.#anchors.at(-1)!.key;
    const wanted = to - below.rank;
    let span = portion(above.key - below.key, wanted + 20, Math.max(1, above.rank - below.rank)) + 1n;
    // Spans that had too few rows, and too many.
    let [few, many] = [0n, 0n];
    for (let attempt = 0; attempt < SPANS_MAX; attempt++) {
      const high = below.key + span < end ? below.key + span : end;
      const rows = await this.#keys.rows(below.key, high, READ_ROWS_MAX);
      if (rows.length < READ_ROWS_MAX && (rows.length >= wanted || high === end)) {
        return rows.slice(from - below.rank, wanted);
      }
      if (rows.length < READ_ROWS_MAX) few = span;
      else many = span;
      // Gaps between keys may be of any size.
      span = many === 0n ? span * 16n : few === 0n ? span / 16n + 1n : (few + many) / 2n;
    }
    return [];
  }
}

function portion(whole: bigint, part: number, of: number): bigint {
  return (whole * BigInt(Math.max(0, Math.round(part)))) / BigInt(Math.max(1, Math.round(of)));
}
