// The operations of YCSB on a pool, without a server in between: prepared statements, each committed by itself. A
// read-modify-write is two of them, as stock YCSB does it (section 15.3).

import type { Connector } from "../../connectors/connector";
import { PostgresDirectConnector } from "../../connectors/postgres_direct";
import { createUsertable } from "../../rpc-servers/postgres/ycsb";
import { type YcsbField, type YcsbRow, type YcsbStore, ycsbFields } from "../../rpc-servers/ycsb_methods";
import { perConnection } from "../per_connection";
import { storeOps } from "./database_ops";

const columns = `ycsb_key, ${ycsbFields.join(", ")}`;
const places = ["ycsb_key", ...ycsbFields].map((_, index) => `$${index + 1}`).join(", ");
const select = { name: "ycsb_read", text: `SELECT ${columns} FROM usertable WHERE ycsb_key = $1` };
const scan = {
  name: "ycsb_scan",
  text: `SELECT ${columns} FROM usertable WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2`,
};
const insert = { name: "ycsb_insert", text: `INSERT INTO usertable (${columns}) VALUES (${places})` };
const arrays = ["ycsb_key", ...ycsbFields].map((_, index) => `$${index + 1}::text[]`).join(", ");
const insertMany = { text: `INSERT INTO usertable (${columns}) SELECT * FROM unnest(${arrays})` };
const update = ycsbFields.map((field) => ({
  name: `ycsb_update_${field}`,
  text: `UPDATE usertable SET ${field} = $2 WHERE ycsb_key = $1`,
}));

const valuesOf = (row: YcsbRow) => [row.ycsb_key, ...ycsbFields.map((field) => row[field])];

function postgresStore(connection: Connector): YcsbStore {
  if (!(connection instanceof PostgresDirectConnector)) throw new Error(`${connection.name} has no pool`);
  const query = (statement: { name?: string; text: string }, values: unknown[] = []) =>
    connection.query({ ...statement, values });
  const read = async (key: string) => (await query(select, [key])).rows[0] as YcsbRow | undefined;
  const change = async (key: string, field: YcsbField, value: string) =>
    (await query(update[ycsbFields.indexOf(field)]!, [key, value])).rowCount !== 0;
  return {
    async clear() {
      await query({ text: createUsertable });
      await query({ text: "TRUNCATE usertable" });
    },
    async insert(rows) {
      if (rows.length === 1) await query(insert, valuesOf(rows[0]!));
      else
        await query(
          insertMany,
          (["ycsb_key", ...ycsbFields] as const).map((name) => rows.map((row) => row[name])),
        );
    },
    read,
    scan: async (key, count) => (await query(scan, [key, count])).rows as YcsbRow[],
    update: change,
    async readModifyWrite(key, field, value) {
      const before = await read(key);
      if (before) await change(key, field, value);
      return before;
    },
    count: async () =>
      Number((await query({ text: "SELECT count(*) AS count FROM usertable" })).rows[0].count),
  };
}

export const ycsbPostgresDirectOps = storeOps(perConnection(postgresStore));
