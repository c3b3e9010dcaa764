// Content of the CRUD benchmark: records that are created, read, changed and deleted by id, by calls and over HTTP.

import { errors, SenderError, t } from "lightcone/server";
import spacetimedb, { content } from "./schema";

export * from "./routes";
export default spacetimedb;

/** The id comes from the client, which makes ULIDs as the REST servers do. */
export const contentCreate = spacetimedb.reducer(
  {
    id: t.string(),
    title: t.string(),
    body: t.string(),
    author: t.option(t.string()),
    status: t.option(t.string()),
    data: t.option(t.string()),
  },
  (ctx, { id, title, body, author, status, data }) => {
    const now = ctx.timestamp;
    try {
      ctx.db.content.insert({ id, title, body, author, status, data, createdAt: now, updatedAt: now });
    } catch (error) {
      throw error instanceof errors.UniqueAlreadyExists ? new SenderError("exists") : error;
    }
  },
);

export const contentUpdate = spacetimedb.reducer(
  { id: t.string(), title: t.string(), body: t.string(), status: t.option(t.string()) },
  (ctx, { id, title, body, status }) => {
    const byId = ctx.db.content.id;
    const record = byId.find(id);
    if (record === null) throw new SenderError("missing");
    byId.update({ ...record, title, body, status, updatedAt: ctx.timestamp });
  },
);

export const contentDelete = spacetimedb.reducer({ id: t.string() }, (ctx, { id }) => {
  if (!ctx.db.content.id.delete(id)) throw new SenderError("missing");
});

export const contentGet = spacetimedb.procedure({ id: t.string() }, t.option(content.rowType), (ctx, { id }) =>
  ctx.withTx((tx) => tx.db.content.id.find(id) ?? undefined),
);

export const contentCount = spacetimedb.procedure({}, t.u64(), (ctx) => ctx.withTx((tx) => tx.db.content.count()));

export const contentClear = spacetimedb.reducer((ctx) => {
  ctx.db.content.clear();
});
