// The transfer of test-1 through Drizzle: two rows read, and both written, in one transaction (sections 9, 10.2 and 10.3).

import { asc, eq, inArray } from "drizzle-orm";
import type { Transfer } from "./accounts";
import { type Columns, type Orm, step } from "./drizzle";

const tablesOf = ({ table, number, balance }: Columns) => ({
  accounts: table("accounts", { id: number("id").primaryKey(), balance: balance("balance") }),
});

/** Answers whether the transfer took place. */
export function drizzleTransfer(orm: Orm): (transfer: Transfer) => boolean | Promise<boolean> {
  const { tables, write, locking, amountOf } = orm(tablesOf);
  const { accounts } = tables;
  return (transfer) =>
    write(function* (transaction) {
      const { from, to } = transfer;
      const amount = amountOf(transfer.amount);
      const both = transaction
        .select()
        .from(accounts)
        .where(inArray(accounts.id, [from, to]));
      const rows = yield* step(locking(both.orderBy(asc(accounts.id))));
      const source = rows.find((row) => row.id === from);
      const target = rows.find((row) => row.id === to);
      if (!source || !target) throw new Error("account_missing");
      if (source.balance < amount) return false;
      const setBalance = (id: number, balance: bigint) =>
        transaction.update(accounts).set({ balance }).where(eq(accounts.id, id));
      yield* step(setBalance(from, source.balance - amount));
      yield* step(setBalance(to, target.balance + amount));
      return true;
    });
}
