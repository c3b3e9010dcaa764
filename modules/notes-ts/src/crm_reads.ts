// What is read of the customers: by procedures, one read each, and by the loop of `benchLoop`.

import { Range } from "lightcone/server";
import type { Context } from "./schema";

function firstOf<Row>(rows: Iterable<Row>, limit: number): Row[] {
  const first: Row[] = [];
  for (const row of rows) {
    if (first.length === limit) break;
    first.push(row);
  }
  return first;
}

/** The first leads with a status, in the order of their ids. */
export function leadsByStatus(ctx: Context, status: string, limit: number) {
  return firstOf(ctx.db.benchCrmLead.byStatus.filter(status), limit);
}

export function contactsOfCompany(ctx: Context, companyId: bigint, limit: number) {
  return firstOf(ctx.db.benchCrmContact.companyId.filter(companyId), limit);
}

export function contactById(ctx: Context, id: bigint) {
  return ctx.db.benchCrmContact.id.find(id) ?? undefined;
}

const lowest = (rows: Iterable<{ id: bigint }>): bigint => firstOf(rows, 1)[0]?.id ?? 0n;

/** The lowest ids: the others follow them one by one. 0 where there is no row. */
export function lowestIds(ctx: Context) {
  const all = new Range<bigint>();
  return {
    company: lowest(ctx.db.benchCrmCompany.id.filter(all)),
    contact: lowest(ctx.db.benchCrmContact.id.filter(all)),
    deal: lowest(ctx.db.benchCrmDeal.id.filter(all)),
  };
}
