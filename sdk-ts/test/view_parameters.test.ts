import { expect, test } from "vitest";
import { schema as clientSchema, Identity, t, table, Uuid, viewCall } from "../src/client";
import { makeQueryBuilder, toSql } from "../src/core/query";
import { Module } from "./support/host";

const row = { id: t.u32(), text: t.string() };
const { schemaType } = clientSchema({
  notesIn: table({ name: "notes_in", takesArguments: true }, row),
  note: table({ name: "note" }, row),
});

test("a call of a view is text that the server reads", () => {
  const { notesIn } = makeQueryBuilder(schemaType);
  expect(toSql(viewCall(notesIn, 1))).toBe('SELECT * FROM "notes_in"(1)');
  expect(viewCall(notesIn).toSql()).toBe('SELECT * FROM "notes_in"()');
  const id = new Uuid(255n);
  const call = viewCall(
    notesIn,
    true,
    -5,
    2n ** 255n,
    "O'Neil",
    new Uint8Array([1, 255]),
    new Identity(1n),
    id,
  );
  expect(call.toSql()).toBe(
    `SELECT * FROM "notes_in"(TRUE, -5, ${2n ** 255n}, 'O''Neil', X'01ff', 0x${"0".repeat(63)}1, 0x${"0".repeat(30)}ff)`,
  );
});

test("bindings say which views take arguments", () => {
  expect(schemaType.tables.notesIn.takesArguments).toBe(true);
  expect(schemaType.tables.note.takesArguments).toBe(false);
});

const MODULE = `
  import { schema, t, table } from "spacetimedb/server";
  const s = schema({ note: table({}, { id: t.u32().primaryKey(), room: t.u32() }) });
  const params = { room: t.u32(), name: t.string() };
  const Row = t.row("Row", { id: t.u32().primaryKey(), text: t.string() });
  export const none = s.anonymousView({ public: true }, t.array(Row), () => []);
  export const rows = s.anonymousView({ public: true }, params, t.array(Row), (ctx, { room, name }) => [
    { id: room, text: name },
  ]);
  export const query = s.view({ public: true }, { room: t.u32() }, t.array(Row), (ctx, { room }) =>
    ctx.from.note.where((row) => row.room.eq(room)),
  );
  export default s;`;

test("a view gets its arguments, and has no primary key then", async () => {
  const module = await Module.load(MODULE, "ours", {
    table_id_from_name: () => 1,
    index_id_from_name: () => 1,
  });
  const definition = Buffer.from(module.describe(), "hex").toString("latin1");
  // Both are among the views; only the view without parameters is among the keys.
  const namesOf = (name: string) => definition.split(`\x04\0\0\0${name}`).length - 1;
  expect(namesOf("none")).toBe(namesOf("rows") + 1);
  const args = Buffer.from("070000000300000061c3a9", "hex");
  const { data } = module.hooks.__call_view_anon__(1, args);
  expect(Buffer.from(data).toString("hex")).toBe("0001000000070000000300000061c3a9");
  const query = module.hooks.__call_view__(0, 1n, Buffer.from("09000000", "hex"));
  expect(Buffer.from(query.data).toString("latin1")).toContain(`WHERE "note"."room" = 9`);
});
