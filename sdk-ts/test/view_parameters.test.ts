import { expect, test } from "vitest";
import { schema as clientSchema, Identity, t, table, Uuid, viewCall } from "../src/client";
import { makeQueryBuilder, toSql } from "../src/core/query";

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
