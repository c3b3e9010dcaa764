// Variables of the environment (2.11), read wherever a module runs; the same as `environment-rs`, with our SDK.

import { environment, Router, SyncResponse, schema, t, table } from "lightcone/server";

const seen = table(
  { name: "seen", public: true },
  { id: t.u64().primaryKey().autoInc(), place: t.string(), value: t.option(t.string()) },
);

const spacetimedb = schema({ seen });
export default spacetimedb;

export const env = environment({
  API_KEY: "string",
  GREETING: { optional: "string" },
  LEVEL: { optional: ["debug", "info"] },
  SWITCH: { optional: ["on"] },
});

export const init = spacetimedb.init((ctx) => {
  ctx.db.seen.insert({ id: 0n, place: "init", value: env.API_KEY });
});

export const look = spacetimedb.reducer({ key: t.string() }, (ctx, { key }) => {
  ctx.db.seen.insert({ id: 0n, place: "reducer", value: ctx.env.get(key) });
});

/** Follows the environment. */
export const greeting = spacetimedb.anonymousView(
  { name: "greeting", public: true },
  t.option(t.row("GreetingRow", { text: t.string() })),
  (ctx) => {
    const text = ctx.env.get("GREETING");
    if (text === "fail") throw new Error("the greeting is wrong");
    return text === undefined ? undefined : { text };
  },
);

/** Outside of a transaction, and inside of one. */
export const fetch = spacetimedb.procedure({ key: t.string() }, t.string(), (ctx, { key }) => {
  const outside = ctx.env.get(key);
  const inside = ctx.withTx((tx) => tx.env.get(key));
  return `${outside} ${inside} ${env.LEVEL}`;
});

export const showKey = spacetimedb.httpHandler((ctx) => new SyncResponse(ctx.env.get("API_KEY")));
export const routes = spacetimedb.httpRouter(new Router().get("/key", showKey));
