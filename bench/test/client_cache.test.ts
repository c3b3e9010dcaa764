// Reads from the cache of a subscribed client: what it keeps by the callbacks of a table, and short runs.

import { describe, expect, it } from "vitest";
import { summaryMarkdown } from "../src/report/tables";
import { type CachedTable, RowsByKey } from "../src/workloads/cached_table";
import { benchInTest } from "./support/workload_bench";

interface Row {
  key: string;
  value: number;
}

/** A table whose changes the test makes. */
class Table implements CachedTable<Row> {
  readonly rows: Row[] = [];
  insert: (row: Row) => void = () => {};
  update: (before: Row, after: Row) => void = () => {};
  delete: (row: Row) => void = () => {};
  count = () => BigInt(this.rows.length);
  iter = () => this.rows;
  onInsert(callback: (context: unknown, row: Row) => void) {
    this.insert = (row) => callback(undefined, row);
  }
  onUpdate(callback: (context: unknown, before: Row, after: Row) => void) {
    this.update = (before, after) => callback(undefined, before, after);
  }
  onDelete(callback: (context: unknown, row: Row) => void) {
    this.delete = (row) => callback(undefined, row);
  }
}

const row = (key: string, value = 0): Row => ({ key, value });

describe("rows by key", () => {
  it("are in order after every kind of change", () => {
    const table = new Table();
    table.rows.push(row("d"), row("b"));
    const rows = new RowsByKey(table, ({ key }) => key);
    expect(rows.keys).toEqual(["b", "d"]);
    table.insert(row("c"));
    table.insert(row("a"));
    expect(rows.keys).toEqual(["a", "b", "c", "d"]);
    table.update(row("b"), row("b", 1));
    expect(rows.get("b")).toEqual(row("b", 1));
    expect(rows.keys).toEqual(["a", "b", "c", "d"]);
    table.insert(row("e"));
    table.delete(row("c"));
    expect(rows.keys).toEqual(["a", "b", "d", "e"]);
    expect(rows.get("c")).toBeUndefined();
    expect(rows.from("c", 2).map(({ key }) => key)).toEqual(["d", "e"]);
    expect(rows.from("f", 2)).toEqual([]);
    expect(rows.size).toBe(4);
  });

  it("are in order after many changes at once", () => {
    const table = new Table();
    const rows = new RowsByKey(table, ({ key }) => key);
    const keys = Array.from({ length: 500 }, (_, index) => String((index * 7919) % 500).padStart(3, "0"));
    for (const key of keys) table.insert(row(key));
    expect(rows.keys).toEqual([...keys].sort());
  });
});

describe.each([
  ["data-layer --iters 4", 39],
  ["ycsb-d --records 200 --ops 400 --concurrency 4 --samples 1", 400],
  ["ycsb-e --records 200 --ops 200 --concurrency 4 --samples 1", 200],
  ["ycsb-f --records 200 --ops 400 --concurrency 4 --samples 1", 400],
])("%s", (words, operations) => {
  it("is verified, in a table of its own", async () => {
    const { code, files } = await benchInTest(`${words} --connectors spacetimedb_sub`);
    expect(code).toBe(0);
    expect(files).toHaveLength(1);
    const { res } = files[0]!.results[0]!;
    expect(res).toMatchObject({ samples: operations, errors: 0, misses: 0, timeouts: 0, invalid: [] });
    expect(res.verify).toMatchObject({ ran: true, ok: true });
    expect(files[0]!.fairness.systemClass).toBe("client-cache");
    expect(summaryMarkdown(files, [])).toContain("answered from the client's cache");
  }, 180_000);
});
