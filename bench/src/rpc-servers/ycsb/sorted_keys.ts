// Keys in ascending order, put in order when they are read.

/** So many new keys are put into their places one by one; more are sorted together with the others. */
const insertedOneByOneMax = 64;

export class SortedKeys<Key extends string | bigint> {
  #keys: Key[] = [];
  #added: Key[] = [];

  add(key: Key): void {
    this.#added.push(key);
  }

  remove(key: Key): void {
    const { all } = this;
    const place = this.#placeOf(key);
    if (all[place] === key) this.#keys.splice(place, 1);
  }

  clear(): void {
    this.#keys = [];
    this.#added = [];
  }

  get all(): readonly Key[] {
    if (this.#added.length > insertedOneByOneMax) this.#keys = sorted([...this.#keys, ...this.#added]);
    else for (const key of this.#added) this.#keys.splice(this.#placeOf(key), 0, key);
    this.#added = [];
    return this.#keys;
  }

  /** Up to `count` keys from this one on. */
  from(key: Key, count: number): Key[] {
    const { all } = this;
    const first = this.#placeOf(key);
    return all.slice(first, first + count);
  }

  /** Where the first key is that is not below this one. */
  #placeOf(key: Key): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#keys[middle]! < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Texts are sorted faster without a function; numbers would be sorted as texts. */
const sorted = <Key extends string | bigint>(keys: Key[]): Key[] =>
  typeof keys[0] === "string" ? keys.sort() : keys.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
