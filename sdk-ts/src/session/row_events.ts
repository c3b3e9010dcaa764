// What a query tells of single rows.

import { getQueryAccessorName, getQueryWhereClause } from "../client";
import type { AnyConnection } from "../client/db_connection_impl";
import { compileCondition } from "../core/query_expression";
import { type AnyRow, known } from "../core/untyped";

/** What a component may want of a query, beside its rows. */
export interface TableOptions<Row> {
  /** How long the rows are kept up to date after the last component that uses them is gone, in milliseconds. Default: 2000. */
  keepAliveMs?: number;
  /** Called when a row came into the result. */
  onInsert?: (row: Row) => void;
  /** Called when a row left the result. */
  onDelete?: (row: Row) => void;
  /** Called when a row of the result changed. */
  onUpdate?: (oldRow: Row, newRow: Row) => void;
}

/** The callbacks of a table. */
interface Table {
  onInsert(callback: (ctx: unknown, row: AnyRow) => void): () => void;
  onUpdate(callback: (ctx: unknown, oldRow: AnyRow, newRow: AnyRow) => void): () => void;
  onDelete(callback: (ctx: unknown, row: AnyRow) => void): () => void;
}

/** Whether anything is to be called. */
export function hasRowCallbacks(callbacks: TableOptions<any> | undefined): boolean {
  return !!(callbacks?.onInsert || callbacks?.onDelete || callbacks?.onUpdate);
}

/** Calls the latest callbacks for the rows of a query; returns how to stop. */
export function listenToRows(
  connection: AnyConnection | null,
  query: unknown,
  latest: () => TableOptions<any> | undefined,
): (() => void) | undefined {
  const table = known<Table | undefined>(connection?.db[getQueryAccessorName(query)]);
  if (!table) return;
  const condition = getQueryWhereClause(query);
  const matches = condition ? compileCondition(condition) : () => true;
  const tell = (name: "onInsert" | "onDelete", row: AnyRow): void => latest()?.[name]?.(row);
  const tellOfMatch = (name: "onInsert" | "onDelete") => (_: unknown, row: AnyRow) => {
    if (matches(row)) tell(name, row);
  };
  const stops = [
    table.onInsert(tellOfMatch("onInsert")),
    table.onDelete(tellOfMatch("onDelete")),
    table.onUpdate((_, oldRow, newRow) => {
      const [was, is] = [matches(oldRow), matches(newRow)];
      if (was && is) latest()?.onUpdate?.(oldRow, newRow);
      else if (is) tell("onInsert", newRow);
      else if (was) tell("onDelete", oldRow);
    }),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}
