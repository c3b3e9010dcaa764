// The module of spec 04 §13.1.
import { schema, t } from 'spacetimedb/server';

const spacetimedb = schema({});
export default spacetimedb;

export const b = spacetimedb.reducer({ s: t.string(), blob: t.byteArray(), o: t.option(t.u8()) }, (ctx, { s, blob, o }) => {
  console.log({ s, blob, o }, ctx.connectionId === null, ctx.sender.toHexString(), ctx.timestamp.microsSinceUnixEpoch);
});

export const noop = spacetimedb.reducer(() => {});
