// The operations of YCSB on a pool, without a server in between: prepared statements, each committed by itself. A
// read-modify-write is two of them, as stock YCSB does it (section 15.3).

import type { Connector } from "../../connectors/connector";
import { PostgresDirectConnector } from "../../connectors/postgres_direct";
import { createUsertable } from "../../rpc-servers/postgres/ycsb";
import { ycsbFields } from "../../rpc-servers/ycsb_methods";
import type { Outcome, RunOperation } from "../workload";

const columns = `ycsb_key, ${ycsbFields.join(", ")}`;
const places = ["ycsb_key", ...ycsbFields].map((_, index) => `$${index + 1}`).join(", ");
const select = { name: "ycsb_read", text: `SELECT ${columns} FROM usertable WHERE ycsb_key = $1` };
const scan = {
  name: "ycsb_scan",
  text: `SELECT ${columns} FROM usertable WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2`,
};
const insert = { name: "ycsb_insert", text: `INSERT INTO usertable (${columns}) VALUES (${places})` };
const insertMany = `INSERT INTO usertable (${columns}) SELECT * FROM unnest(${["ycsb_key", ...ycsbFields]
  .map((_, index) => `$${index + 1}::text[]`)
  .join(", ")})`;
const update = ycsbFields.map((field) => ({
  name: `ycsb_update_${field}`,
  text: `UPDATE usertable SET ${field} = $2 WHERE ycsb_key = $1`,
}));

type Arguments = Record<string, unknown>;

const query = (
  connection: Connector,
  statement: string | { name: string; text: string },
  values: unknown[],
) => {
  if (!(connection instanceof PostgresDirectConnector)) throw new Error(`${connection.name} has no pool`);
  return connection.query(
    typeof statement === "string" ? { text: statement, values } : { ...statement, values },
  );
};

const read = async (connection: Connector, { key }: Arguments): Promise<Outcome> => {
  const { rows } = await query(connection, select, [key]);
  return { ok: true, miss: rows.length === 0, found: rows[0] };
};

const change = async (connection: Connector, { key, field, value }: Arguments): Promise<Outcome> => {
  const { rowCount } = await query(connection, update[Number(field)]!, [key, value]);
  return { ok: true, miss: rowCount === 0 };
};

export const ycsbPostgresDirectOps: Record<string, RunOperation> = {
  read,
  update: change,
  rmw: async (connection, args) => {
    const before = await read(connection, args);
    if (!before.miss) await change(connection, args);
    return before;
  },
  insert: async (connection, { key, fields }) => {
    await query(connection, insert, [key, ...(fields as string[])]);
    return { ok: true };
  },
  scan: async (connection, { key, count }) => {
    const { rows } = await query(connection, scan, [key, count]);
    return { ok: true, miss: rows.length === 0 };
  },
  clear: async (connection) => {
    await query(connection, createUsertable, []);
    await query(connection, "TRUNCATE usertable", []);
    return { ok: true };
  },
  insert_many: async (connection, { rows }) => {
    const records = rows as { key: string; fields: string[] }[];
    const byColumn = [
      records.map(({ key }) => key),
      ...ycsbFields.map((_, field) => records.map(({ fields }) => fields[field])),
    ];
    await query(connection, insertMany, byColumn);
    return { ok: true };
  },
  count: async (connection) => {
    const { rows } = await query(connection, "SELECT count(*) AS count FROM usertable", []);
    return { ok: true, found: (rows[0] as { count: string }).count };
  },
};
