// YCSB in a Map: gone with the process (section 15.5).

import type { YcsbRow, YcsbStore } from "./ycsb_methods";

/** More new keys than this are sorted together with the others; fewer are put in one by one. */
const singleKeysMax = 16;

/** The keys in ascending order, put in order when somebody looks. */
class SortedKeys {
  #keys: string[] = [];
  #added: string[] = [];

  add(key: string): void {
    this.#added.push(key);
  }

  clear(): void {
    this.#keys = [];
    this.#added = [];
  }

  from(start: string, count: number): string[] {
    this.#arrange();
    const first = this.#placeOf(start);
    return this.#keys.slice(first, first + count);
  }

  #arrange(): void {
    if (this.#added.length > singleKeysMax) this.#keys = [...this.#keys, ...this.#added].sort();
    else for (const key of this.#added) this.#keys.splice(this.#placeOf(key), 0, key);
    this.#added = [];
  }

  /** Where the first key is that is not below this one. */
  #placeOf(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#keys[middle]! < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export function memoryYcsb(): YcsbStore {
  const rows = new Map<string, YcsbRow>();
  const keys = new SortedKeys();
  return {
    clear() {
      rows.clear();
      keys.clear();
    },
    insert(added) {
      for (const { ycsb_key: key } of added) if (rows.has(key)) throw new Error(`${key} is there already`);
      for (const row of added) {
        rows.set(row.ycsb_key, row);
        keys.add(row.ycsb_key);
      }
    },
    read: (key) => rows.get(key),
    scan: (key, count) => keys.from(key, count).map((found) => rows.get(found)!),
    update(key, field, value) {
      const row = rows.get(key);
      if (row) row[field] = value;
      return row !== undefined;
    },
    readModifyWrite(key, field, value) {
      const row = rows.get(key);
      if (!row) return undefined;
      rows.set(key, { ...row, [field]: value });
      return row;
    },
    count: () => rows.size,
  };
}
