// The RPC methods of YCSB (sections 15.3 and 15.5), over whatever keeps the records.

import { type Answer, BadArguments, type RpcArguments, type RpcMethods, text, whole } from "../rpc";

export const ycsbFields = [
  ...["field0", "field1", "field2", "field3", "field4"],
  ...["field5", "field6", "field7", "field8", "field9"],
] as const;
export type YcsbField = (typeof ycsbFields)[number];

export type YcsbRow = { ycsb_key: string } & Record<YcsbField, string>;

export interface YcsbStore {
  /** Makes the table if it is missing, and empties it. */
  clear(): Answer<void>;
  insert(rows: YcsbRow[]): Answer<void>;
  read(key: string): Answer<YcsbRow | undefined>;
  /** Up to `count` records from a key on, ascending. */
  scan(key: string, count: number): Answer<YcsbRow[]>;
  /** Whether there is such a record. */
  update(key: string, field: YcsbField, value: string): Answer<boolean>;
  /** Reads and updates, in one transaction where there is a server in front; answers the record as it was. */
  readModifyWrite(key: string, field: YcsbField, value: string): Answer<YcsbRow | undefined>;
  count(): Answer<number>;
}

export const ycsbColumns = ["ycsb_key", ...ycsbFields] as const;

export const valuesOf = (row: YcsbRow): string[] => ycsbColumns.map((column) => row[column]);

/** Of stores without a transaction: a read and an update, as stock YCSB does it (section 15.3). */
export const readThenUpdate =
  (
    read: (key: string) => Promise<YcsbRow | undefined>,
    update: YcsbStore["update"],
  ): YcsbStore["readModifyWrite"] =>
  async (key, field, value) => {
    const row = await read(key);
    if (row) await update(key, field, value);
    return row;
  };

/** A row from a key and ten values. */
export function ycsbRow(key: string, fields: readonly string[]): YcsbRow {
  const row = { ycsb_key: key } as YcsbRow;
  for (const [index, name] of ycsbFields.entries()) row[name] = fields[index]!;
  return row;
}

function rowOf(args: RpcArguments): YcsbRow {
  const fields = args["fields"];
  const isComplete = Array.isArray(fields) && fields.length === ycsbFields.length;
  if (!isComplete || !fields.every((field) => typeof field === "string"))
    throw new BadArguments("invalid fields");
  return ycsbRow(text(args, "key"), fields);
}

function fieldOf(args: RpcArguments): YcsbField {
  const field = ycsbFields[Number(args["field"])];
  if (field === undefined) throw new BadArguments("invalid field");
  return field;
}

const scanRowsMax = 10_000;

export function ycsbMethods(store: YcsbStore): RpcMethods {
  return {
    ycsb_clear: () => store.clear(),
    ycsb_insert: (args) => store.insert([rowOf(args)]),
    ycsb_insert_many(args) {
      const rows = args["rows"];
      if (!Array.isArray(rows)) throw new BadArguments("invalid rows");
      return store.insert(rows.map((row) => rowOf(row as RpcArguments)));
    },
    ycsb_read: async (args) => (await store.read(text(args, "key"))) ?? null,
    ycsb_scan: (args) => store.scan(text(args, "key"), whole(args, "count", scanRowsMax)),
    ycsb_update: async (args) => ({
      found: await store.update(text(args, "key"), fieldOf(args), text(args, "value")),
    }),
    ycsb_rmw: async (args) =>
      (await store.readModifyWrite(text(args, "key"), fieldOf(args), text(args, "value"))) ?? null,
    ycsb_count: () => store.count(),
  };
}
