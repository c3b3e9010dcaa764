// Longest runs of tokens that one text has in common with others.

import type { Token } from "./sources";

/** A run of tokens that stands elsewhere too. */
export interface Run {
  /** Position of its first token. */
  readonly at: number;
  readonly length: number;
  /** The text in which it stands too. */
  readonly other: number;
}

/** Texts in which runs of at least `lengthMin` tokens are looked for. */
export class RunIndex {
  readonly #lengthMin: number;
  readonly #texts: Int32Array[] = [];
  readonly #numbers = new Map<string, number>();
  /** Where runs of the least length begin, by their hash: text and position, one after the other. */
  readonly #places = new Map<number, number[]>();

  constructor(texts: readonly (readonly Token[])[], lengthMin: number) {
    this.#lengthMin = lengthMin;
    for (const text of texts) this.#add(this.#encode(text));
  }

  /** The runs of a text, from its beginning to its end, none inside of another. */
  find(tokens: readonly Token[]): Run[] {
    const text = this.#encode(tokens);
    const runs: Run[] = [];
    for (let at = 0; at + this.#lengthMin <= text.length; ) {
      const run = this.#longestAt(text, at);
      if (run) runs.push(run);
      at += run?.length ?? 1;
    }
    return runs;
  }

  #encode(tokens: readonly Token[]): Int32Array {
    return Int32Array.from(tokens, ({ text }) => {
      let number = this.#numbers.get(text);
      if (number === undefined) this.#numbers.set(text, (number = this.#numbers.size));
      return number;
    });
  }

  #add(text: Int32Array): void {
    const index = this.#texts.push(text) - 1;
    for (let at = 0; at + this.#lengthMin <= text.length; at++) {
      const hash = this.#hash(text, at);
      const places = this.#places.get(hash);
      if (places) places.push(index, at);
      else this.#places.set(hash, [index, at]);
    }
  }

  #hash(text: Int32Array, at: number): number {
    let hash = 0;
    for (let i = at; i < at + this.#lengthMin; i++) hash = (Math.imul(hash, 1_000_003) ^ text[i]!) | 0;
    return hash;
  }

  #longestAt(text: Int32Array, at: number): Run | undefined {
    const places = this.#places.get(this.#hash(text, at)) ?? [];
    let longest: Run | undefined;
    for (let i = 0; i < places.length; i += 2) {
      const length = commonLength(text, at, this.#texts[places[i]!]!, places[i + 1]!);
      // Another run may have the same hash.
      if (length >= this.#lengthMin && length > (longest?.length ?? 0)) {
        longest = { at, length, other: places[i]! };
      }
    }
    return longest;
  }
}

function commonLength(a: Int32Array, aStart: number, b: Int32Array, bStart: number): number {
  const end = Math.min(a.length - aStart, b.length - bStart);
  for (let i = 0; i < end; i++) if (a[aStart + i] !== b[bStart + i]) return i;
  return end;
}
