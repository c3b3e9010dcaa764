// What a transaction costs depends on what it changes, not on how large its table is.

import { expect, test } from "vitest";
import { Changes, operationsOf, type Row, type RowKey, RowStore } from "../../src/client/row_store";
import { runToEnd } from "../../src/client/scheduling";

function rowsOf(ids: readonly number[], value: number): { keys: RowKey[]; rows: Row[] } {
  return { keys: [...ids], rows: ids.map((id) => ({ id, value })) };
}

const ids = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

test.each([
  ["10,000 of 100,000 rows change in place", 20_000, 100_000, false],
  ["50,000 of 400,000 do", 100_000, 400_000, false],
  ["a first load is done in slices, as there is nothing to copy", 100_000, 0, true],
  ["nearly all rows change: in slices", 100_000, 50_000, true],
  ["so much that the page would stand still: in slices", 1_000_000, 10_000_000, true],
  ["few rows of few: in place", 1000, 100, false],
])("%s", (_, operations, rows, isCopied) => {
  const store = new RowStore();
  Object.defineProperty(store.rows, "size", { value: rows });
  expect(store.wantsSlices(operations)).toBe(isCopied);
});

test("updates, inserts and deletes of one message are told apart", () => {
  const store = new RowStore();
  const before = rowsOf(ids(0, 10), 0);
  runToEnd(store.apply(runToEnd(operationsOf(before, { keys: [], rows: [] }, true)), new Changes()));
  const changes = new Changes();
  const after = rowsOf(ids(5, 15), 1);
  runToEnd(store.apply(runToEnd(operationsOf(after, rowsOf(ids(0, 10), 0), true)), changes));
  expect(changes.inserted).toEqual(rowsOf(ids(10, 15), 1).rows);
  expect(changes.deleted).toEqual(rowsOf(ids(0, 5), 0).rows);
  expect(changes.updated.length).toBe(10);
});
