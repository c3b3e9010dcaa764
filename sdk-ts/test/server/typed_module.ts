// The module of typed.test.ts.

import { SenderError, schema, t, table } from "../../src/server";
import * as mail from "./typed_library";

const Color = t.enum("Color", ["Red", "lightBlue"]);
const Shape = t.enum("Shape", {
  Dot: t.unit(),
  roundThing: t.object("RoundThing", { outerRadius: t.f64() }),
});

const boardCard = table(
  {
    public: true,
    name: "cards",
    indexes: [{ accessor: "byOwnerAndRank", algorithm: "btree", columns: ["owner_id", "rank2"] }],
  },
  {
    cardId: t.u64().primaryKey().autoInc(),
    owner_id: t.identity().index("btree"),
    rank2: t.u32(),
    isDone: t.bool(),
    nickName: t.option(t.string()).name("nick_name"),
    color: Color,
    shape: Shape,
    slugText: t.string().unique(),
    tagList: t.array(t.string()),
    madeAt: t.timestamp(),
    userID: t.u32(),
    other: t.u32().name("renamed"),
  },
);
const secretNote = table({}, { id: t.u32().primaryKey(), text: t.string() });

const spacetimedb = schema({ boardCard, secretNote, mail });
export default spacetimedb;

export const init = spacetimedb.init((ctx) => {
  ctx.db.secretNote.insert({ id: 1, text: "from init" });
});

export const addCard = spacetimedb.reducer(
  { slugText: t.string(), nickName: t.option(t.string()), color: Color, shape_kind: Shape },
  (ctx, { slugText, nickName, color, shape_kind }) => {
    if (slugText === "") throw new SenderError("a slug is wanted");
    ctx.db.boardCard.insert({
      cardId: 0n,
      owner_id: ctx.sender,
      rank2: 7,
      isDone: false,
      nickName,
      color,
      shape: shape_kind,
      slugText,
      tagList: ["a", "b"],
      madeAt: ctx.timestamp,
      userID: 1,
      other: 2,
    });
  },
);

export const finishCard = spacetimedb.reducer({ name: "finish" }, { cardId: t.u64() }, (ctx, { cardId }) => {
  const card = ctx.db.boardCard.cardId.find(cardId);
  if (card) ctx.db.boardCard.cardId.update({ ...card, isDone: true });
});

const Summary = t.object("Summary", { cardCount: t.u64(), lastShape: t.option(Shape) });
export const sumUp = spacetimedb.procedure({ extraCards: t.u64() }, Summary, (ctx, { extraCards }) =>
  ctx.withTx((tx) => ({
    cardCount: tx.db.boardCard.count() + extraCards,
    lastShape: [...tx.db.boardCard.iter()].at(-1)?.shape,
  })),
);
export const ping = spacetimedb.procedure(t.string(), () => "pong");
export const otherName = spacetimedb.procedure({ name: "renamed_procedure" }, t.string(), () => "never");

export const myCards = spacetimedb.view(
  { name: "cards_of_mine", public: true },
  t.array(boardCard.rowType),
  (ctx) => [...ctx.db.boardCard.owner_id.filter(ctx.sender)],
);
export const cardCount = spacetimedb.anonymousView(
  { public: true },
  t.option(t.row("CardCountRow", { howMany: t.u64() })),
  // Without a parameter, and with a narrower result than the view has.
  () => undefined,
);
