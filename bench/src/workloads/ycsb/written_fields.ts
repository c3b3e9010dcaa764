// Which fields a run has written, to know what they must hold at the end.

import { value } from "../random";

const fieldCount = 10;
const fieldLength = 100;

/** Several writes of one field may have happened in any order, and a failed one may have happened: nothing is known then. */
const unknown = -1;

export class WrittenFields {
  /** Seed of the value by record and field. */
  readonly #seeds = new Map<number, number>();

  /** `seed` is undefined when the outcome of the write is not known. */
  note(record: number, field: number, seed: number | undefined): void {
    const place = record * fieldCount + field;
    this.#seeds.set(place, seed === undefined || this.#seeds.has(place) ? unknown : seed);
  }

  /** What a field must hold, or undefined if that is not known. */
  expected(
    record: number,
    field: number,
    loaded: (record: number, field: number) => string,
  ): string | undefined {
    const seed = this.#seeds.get(record * fieldCount + field);
    if (seed === undefined) return loaded(record, field);
    return seed === unknown ? undefined : value(seed, fieldLength);
  }

  /** Some of the records that were written. */
  sample(most: number): number[] {
    const records = new Set<number>();
    for (const place of this.#seeds.keys()) {
      if (records.size >= most) break;
      records.add(Math.floor(place / fieldCount));
    }
    return [...records];
  }
}
