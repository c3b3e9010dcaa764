// The RPC methods of YCSB (sections 15.3 and 15.5), over whatever keeps the records.

import { BadArguments, type RpcArguments, type RpcMethods } from "./rpc";

export const ycsbFields = [
  ...["field0", "field1", "field2", "field3", "field4"],
  ...["field5", "field6", "field7", "field8", "field9"],
] as const;
export type YcsbField = (typeof ycsbFields)[number];

export type YcsbRow = { ycsb_key: string } & Record<YcsbField, string>;

export interface YcsbStore {
  /** Makes the table if it is missing, and empties it. */
  clear(): void | Promise<void>;
  insert(rows: YcsbRow[]): void | Promise<void>;
  read(key: string): YcsbRow | undefined | Promise<YcsbRow | undefined>;
  /** Up to `count` records from a key on, ascending. */
  scan(key: string, count: number): YcsbRow[] | Promise<YcsbRow[]>;
  /** Whether there is such a record. */
  update(key: string, field: YcsbField, value: string): boolean | Promise<boolean>;
  /** Reads and updates in one transaction; answers the record as it was. */
  readModifyWrite(
    key: string,
    field: YcsbField,
    value: string,
  ): YcsbRow | undefined | Promise<YcsbRow | undefined>;
  count(): number | Promise<number>;
}

/** A row from a key and ten values. */
export function ycsbRow(key: string, fields: readonly string[]): YcsbRow {
  const row = { ycsb_key: key } as YcsbRow;
  for (const [index, name] of ycsbFields.entries()) row[name] = fields[index]!;
  return row;
}

function text(args: RpcArguments, name: string): string {
  const value = args[name];
  if (typeof value !== "string" || value === "") throw new BadArguments(`invalid ${name}`);
  return value;
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

function countOf(args: RpcArguments): number {
  const count = Number(args["count"]);
  if (!Number.isInteger(count) || count < 0 || count > scanRowsMax) throw new BadArguments("invalid count");
  return count;
}

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
    ycsb_scan: (args) => store.scan(text(args, "key"), countOf(args)),
    ycsb_update: async (args) => ({
      found: await store.update(text(args, "key"), fieldOf(args), text(args, "value")),
    }),
    ycsb_rmw: async (args) =>
      (await store.readModifyWrite(text(args, "key"), fieldOf(args), text(args, "value"))) ?? null,
    ycsb_count: () => store.count(),
  };
}
