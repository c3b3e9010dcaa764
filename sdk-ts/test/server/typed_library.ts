// A submodule of typed_module.ts.

import { schema, t, table } from "../../src/server";

const sentLetter = table(
  { public: true },
  { letterId: t.u32().primaryKey().autoInc(), to_whom: t.string().unique() },
);
const library = schema({ sentLetter });
export default library;

export const sendLetter = library.reducer({ to_whom: t.string() }, (ctx, { to_whom }) => {
  ctx.db.sentLetter.insert({ letterId: 0, to_whom });
});
export const countLetters = library.procedure(t.u64(), (ctx) => ctx.withTx((tx) => tx.db.sentLetter.count()));
