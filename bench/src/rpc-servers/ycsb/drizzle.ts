// YCSB through Drizzle (section 15.4).

import { asc, count, eq, gte } from "drizzle-orm";
import { type Columns, changedRows, type Orm, step } from "../drizzle";
import { type YcsbField, type YcsbRow, type YcsbStore, ycsbFields } from "./store";

const tablesOf = (columns: Columns) => {
  const fields = ycsbFields.map((name) => [name, columns.text(name)]);
  return {
    usertable: columns.table("usertable", {
      ycsb_key: columns.text("ycsb_key").primaryKey(),
      ...(Object.fromEntries(fields) as Record<YcsbField, ReturnType<Columns["text"]>>),
    }),
  };
};

/** Rows of one INSERT: SQLite allows 32,766 parameters. */
const rowsPerStatement = 500;

/** `plain` makes the table and empties it. */
export function drizzleYcsb(orm: Orm, plain: () => Pick<YcsbStore, "clear">): YcsbStore {
  const { tables, database, run, write, locking } = orm(tablesOf);
  const { usertable } = tables;
  const byKey = (key: string) => eq(usertable.ycsb_key, key);
  const insert = (rows: YcsbRow[]) => database.insert(usertable).values(rows);
  return {
    clear: () => plain().clear(),
    async insert(rows) {
      if (rows.length === 0) return;
      if (rows.length <= rowsPerStatement) await run(insert(rows));
      else
        await write(function* (transaction) {
          for (let first = 0; first < rows.length; first += rowsPerStatement)
            yield* step(transaction.insert(usertable).values(rows.slice(first, first + rowsPerStatement)));
        });
    },
    read: async (key) => (await run(database.select().from(usertable).where(byKey(key)).limit(1)))[0],
    scan: (key, most) => {
      const from = database.select().from(usertable).where(gte(usertable.ycsb_key, key));
      return run(from.orderBy(asc(usertable.ycsb_key)).limit(most));
    },
    update: async (key, field, value) =>
      changedRows(
        await run(
          database
            .update(usertable)
            .set({ [field]: value })
            .where(byKey(key)),
        ),
      ) === 1,
    readModifyWrite: (key, field, value) =>
      write(function* (transaction) {
        const [row] = yield* step(locking(transaction.select().from(usertable).where(byKey(key))));
        const change = transaction.update(usertable).set({ [field]: value });
        if (row) yield* step(change.where(byKey(key)));
        return row;
      }),
    count: async () => (await run(database.select({ count: count() }).from(usertable)))[0]!.count,
  };
}
