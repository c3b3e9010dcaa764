import { schema, t, table } from "lightcone/server";

export const content = table(
  { public: true },
  {
    id: t.string().primaryKey(),
    title: t.string(),
    body: t.string(),
    author: t.option(t.string()),
    status: t.option(t.string()),
    /** JSON text. */
    data: t.option(t.string()),
    createdAt: t.timestamp(),
    updatedAt: t.timestamp(),
  },
);

const spacetimedb = schema({ content });

export default spacetimedb;
