// The operations of YCSB on a database without a server in front.

import type { Connector } from "../../connectors/connector";
import { YcsbDatabaseConnector } from "../../connectors/ycsb_database";
import { type YcsbStore, ycsbFields, ycsbRow } from "../../rpc-servers/ycsb_methods";
import { operationsOn } from "../per_connection";
import type { Outcome, RunOperation } from "../workload";

const text = (value: unknown) => value as string;
const fieldOf = (value: unknown) => {
  const field = ycsbFields[Number(value)];
  if (field === undefined) throw new Error("invalid field");
  return field;
};

const record = (found: unknown): Outcome => ({ ok: true, miss: found === undefined, found });

interface LoadedRow {
  key: string;
  fields: string[];
}

export function storeOps(storeOf: (connection: Connector) => YcsbStore): Record<string, RunOperation> {
  const { write, find } = operationsOn(storeOf);
  return {
    read: async (connection, { key }) => record(await storeOf(connection).read(text(key))),
    update: async (connection, { key, field, value }) => ({
      ok: true,
      miss: !(await storeOf(connection).update(text(key), fieldOf(field), text(value))),
    }),
    rmw: async (connection, { key, field, value }) =>
      record(await storeOf(connection).readModifyWrite(text(key), fieldOf(field), text(value))),
    scan: async (connection, { key, count }) => {
      const rows = await storeOf(connection).scan(text(key), Number(count));
      return { ok: true, miss: rows.length === 0, found: rows };
    },
    insert: write((store, { key, fields }) => store.insert([ycsbRow(text(key), fields as string[])])),
    insert_many: write((store, { rows }) =>
      store.insert((rows as LoadedRow[]).map(({ key, fields }) => ycsbRow(key, fields))),
    ),
    clear: write((store) => store.clear()),
    count: find((store) => store.count()),
  };
}

export const ycsbDatabaseOps = storeOps((connection) => {
  if (connection instanceof YcsbDatabaseConnector) return connection.store;
  throw new Error(`${connection.name} is no database`);
});
