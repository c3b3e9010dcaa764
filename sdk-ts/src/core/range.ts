/** One end of a range. */
export type Bound<T> = { tag: "included"; value: T } | { tag: "excluded"; value: T } | { tag: "unbounded" };

const UNBOUNDED = { tag: "unbounded" } as const;

/** Values between two bounds; a bound that is left out is no bound. */
export class Range<T> {
  readonly #bounds: readonly [from: Bound<T>, to: Bound<T>];

  constructor(from?: Bound<T> | null, to?: Bound<T> | null) {
    this.#bounds = [from ?? UNBOUNDED, to ?? UNBOUNDED];
  }

  get to(): Bound<T> {
    return this.#bounds[1];
  }

  get from(): Bound<T> {
    return this.#bounds[0];
  }
}
