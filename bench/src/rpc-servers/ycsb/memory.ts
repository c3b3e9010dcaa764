// YCSB in a Map: gone with the process (section 15.5).

import { SortedKeys } from "./sorted_keys";
import type { YcsbRow, YcsbStore } from "./store";

export function memoryYcsb(): YcsbStore {
  const rows = new Map<string, YcsbRow>();
  const keys = new SortedKeys<string>();
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
