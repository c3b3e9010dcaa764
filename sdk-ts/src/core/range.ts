/** One end of a range. */
export type Bound<T> = { tag: "included"; value: T } | { tag: "excluded"; value: T } | { tag: "unbounded" };

/** Values between two bounds; a bound that is left out is no bound. */
export class Range<T> {
  readonly #from: Bound<T>;
  readonly #to: Bound<T>;

  constructor(from?: Bound<T> | null, to?: Bound<T> | null) {
    this.#from = from ?? { tag: "unbounded" };
    this.#to = to ?? { tag: "unbounded" };
  }

  get from(): Bound<T> {
    return this.#from;
  }

  get to(): Bound<T> {
    return this.#to;
  }
}
