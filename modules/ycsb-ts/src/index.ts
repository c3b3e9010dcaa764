// The table of YCSB: records of a key and ten fields. Functions that return something are procedures; each is one
// transaction.

import {
  errors,
  type Infer,
  type InferSchema,
  Range,
  type ReducerCtx,
  SenderError,
  schema,
  t,
  table,
} from "lightcone/server";

const usertable = table(
  { public: true },
  {
    ycsbKey: t.string().primaryKey().index("btree"),
    field0: t.string(),
    field1: t.string(),
    field2: t.string(),
    field3: t.string(),
    field4: t.string(),
    field5: t.string(),
    field6: t.string(),
    field7: t.string(),
    field8: t.string(),
    field9: t.string(),
  },
);

const spacetimedb = schema({ usertable });

export default spacetimedb;

type Row = Infer<typeof usertable.rowType>;
type Context = ReducerCtx<InferSchema<typeof spacetimedb>>;

/** What a record is loaded with. */
const YcsbRecord = t.object("YcsbRecord", { key: t.string(), fields: t.array(t.string()) });

const fieldCount = 10;

function insert(ctx: Context, key: string, fields: string[]): void {
  if (fields.length !== fieldCount) throw new SenderError(`a record has ${fieldCount} fields, not ${fields.length}`);
  const [field0, field1, field2, field3, field4, field5, field6, field7, field8, field9] = fields as [
    ...[string, string, string, string, string],
    ...[string, string, string, string, string],
  ];
  try {
    ctx.db.usertable.insert({
      ycsbKey: key,
      ...{ field0, field1, field2, field3, field4 },
      ...{ field5, field6, field7, field8, field9 },
    });
  } catch (error) {
    throw error instanceof errors.UniqueAlreadyExists ? new SenderError("exists") : error;
  }
}

/** Replaces one field; the record as it was, or null if there is none. */
function update(ctx: Context, key: string, field: number, value: string): Row | null {
  if (field >= fieldCount) throw new SenderError(`there is no field ${field}`);
  const byKey = ctx.db.usertable.ycsbKey;
  const row = byKey.find(key);
  if (row !== null) byKey.update({ ...row, [`field${field}`]: value });
  return row;
}

export const ycsbInsert = spacetimedb.reducer(
  { key: t.string(), fields: t.array(t.string()) },
  (ctx, { key, fields }) => insert(ctx, key, fields),
);

export const ycsbInsertMany = spacetimedb.reducer({ rows: t.array(YcsbRecord) }, (ctx, { rows }) => {
  for (const { key, fields } of rows) insert(ctx, key, fields);
});

const change = { key: t.string(), field: t.u8(), value: t.string() };

export const ycsbUpdate = spacetimedb.reducer(change, (ctx, { key, field, value }) => {
  if (update(ctx, key, field, value) === null) throw new SenderError("missing");
});

export const ycsbRmw = spacetimedb.procedure(change, t.option(usertable.rowType), (ctx, { key, field, value }) =>
  ctx.withTx((tx) => update(tx, key, field, value) ?? undefined),
);

export const ycsbRead = spacetimedb.procedure({ key: t.string() }, t.option(usertable.rowType), (ctx, { key }) =>
  ctx.withTx((tx) => tx.db.usertable.ycsbKey.find(key) ?? undefined),
);

/** Up to `count` records from a key on, ascending. */
export const ycsbScan = spacetimedb.procedure(
  { key: t.string(), count: t.u32() },
  t.array(usertable.rowType),
  (ctx, { key, count }) =>
    ctx.withTx((tx) => {
      const rows: Row[] = [];
      if (count === 0) return rows;
      for (const row of tx.db.usertable.ycsbKey.filter(new Range({ tag: "included", value: key }))) {
        rows.push(row);
        if (rows.length === count) break;
      }
      return rows;
    }),
);

export const ycsbCount = spacetimedb.procedure({}, t.u64(), (ctx) => ctx.withTx((tx) => tx.db.usertable.count()));

export const ycsbClear = spacetimedb.reducer((ctx) => {
  ctx.db.usertable.clear();
});
