// SQL over HTTP, with the rights of the session.

import * as api from "./api";
import { isObject, type Json } from "./json";
import { type Field, fieldsOf, fromUntyped, Types } from "./types";

/** A cell is decoded when it is shown: a result may have very many. */
export interface Result {
  columns: Field[];
  rows: Json[][];
  changed: { inserted: number; updated: number; deleted: number };
  /** As the server measured it. */
  micros: number | undefined;
}

export async function sql(
  database: string,
  token: string,
  text: string,
  signal?: AbortSignal,
): Promise<Result> {
  const path = `database/${api.part(database)}/sql`;
  const options = { method: "POST", token, body: text, ...(signal && { signal }) };
  const parsed = await api.json(path, options);
  const first = Array.isArray(parsed) ? parsed[0] : undefined;
  if (!isObject(first)) throw new Error("The server's answer is not understood.");
  const types = new Types(null);
  const stats = isObject(first["stats"]) ? first["stats"] : {};
  return {
    columns: fieldsOf(types.of({ Product: first["schema"] ?? {} })),
    rows: (Array.isArray(first["rows"]) ? first["rows"] : []) as Json[][],
    changed: {
      inserted: Number(stats["rows_inserted"] ?? 0),
      updated: Number(stats["rows_updated"] ?? 0),
      deleted: Number(stats["rows_deleted"] ?? 0),
    },
    micros: first["total_duration_micros"] === undefined ? undefined : Number(first["total_duration_micros"]),
  };
}

/** The values of a row, decoded. */
export const valuesOf = (row: Json[], columns: readonly Field[]): unknown[] =>
  columns.map((column, at) => fromUntyped(row[at] ?? null, column.type));

/** The one number of a `SELECT COUNT(*)`. */
export async function count(
  database: string,
  token: string,
  text: string,
  signal?: AbortSignal,
): Promise<number> {
  const { rows } = await sql(database, token, text, signal);
  return Number(rows[0]?.[0] ?? 0);
}
