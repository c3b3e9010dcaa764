// The operations of YCSB on a database without a server in front.

import type { Connector } from "../../connectors/connector";
import { YcsbDatabaseConnector } from "../../connectors/ycsb_database";
import { ycsbFields, ycsbRow } from "../../rpc-servers/ycsb_methods";
import type { Outcome, RunOperation } from "../workload";

const storeOf = (connection: Connector) => {
  if (connection instanceof YcsbDatabaseConnector) return connection.store;
  throw new Error(`${connection.name} is no database`);
};

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

export const ycsbDatabaseOps: Record<string, RunOperation> = {
  read: async (connection, { key }) => record(await storeOf(connection).read(text(key))),
  update: async (connection, { key, field, value }) => ({
    ok: true,
    miss: !(await storeOf(connection).update(text(key), fieldOf(field), text(value))),
  }),
  rmw: async (connection, { key, field, value }) =>
    record(await storeOf(connection).readModifyWrite(text(key), fieldOf(field), text(value))),
  insert: async (connection, { key, fields }) => {
    await storeOf(connection).insert([ycsbRow(text(key), fields as string[])]);
    return { ok: true };
  },
  scan: async (connection, { key, count }) => {
    const rows = await storeOf(connection).scan(text(key), Number(count));
    return { ok: true, miss: rows.length === 0, found: rows };
  },
  clear: async (connection) => {
    await storeOf(connection).clear();
    return { ok: true };
  },
  insert_many: async (connection, { rows }) => {
    await storeOf(connection).insert((rows as LoadedRow[]).map(({ key, fields }) => ycsbRow(key, fields)));
    return { ok: true };
  },
  count: async (connection) => ({ ok: true, found: await storeOf(connection).count() }),
};
