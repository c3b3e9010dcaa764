import { describe, expect, it } from "vitest";
import { Datastore } from "./support/datastore";
import { Module } from "./support/host";

// Migration functions (docs/migrations.md): what `migrate` makes is what a module with the published package declares by names.

const TABLES = `account: table({ public: true }, { id: t.u32().primaryKey(), owner: t.string() })`;
const OLD = `table({}, { id: t.u32().primaryKey(), owner: t.string(), street: t.string() })`;

const OURS = `
import { schema, t, table } from "spacetimedb/server";
const s = schema({ ${TABLES} });
export const anything = s.migrate({ account: ${OLD} }, (ctx) => {
  for (const { id, owner } of ctx.old.account.iter()) ctx.db.account.insert({ id, owner });
});
export default s;`;

const BY_NAMES = `
import { schema, t, table } from "spacetimedb/server";
const s = schema({ ${TABLES}, __old_account: ${OLD} });
export const __migrate = s.reducer((ctx) => {
  for (const { id, owner } of ctx.db.__old_account.iter()) ctx.db.account.insert({ id, owner });
});
export default s;`;

describe("migration functions", () => {
  it("are the same module with and without `migrate`, byte by byte", async () => {
    const ours = (await Module.load(OURS, "ours")).describe();
    expect(ours).toBe((await Module.load(BY_NAMES, "npm")).describe());
    expect(ours).toBe((await Module.load(BY_NAMES, "ours")).describe());
  });

  it.each([
    ["migrate", OURS],
    ["names", BY_NAMES],
  ])("read old rows and write new ones, by %s", async (_, source) => {
    const data = new Datastore();
    const module = await Module.load(source, "ours", data.functions);
    data.answers.push("07000000" + "01000000" + "61" + "01000000" + "62");
    module.reducer(0);
    const log = data.take();
    expect(log).toContain('table_id_from_name("__old_account")');
    expect(log.filter((line) => line.startsWith("insert"))).toEqual(["insert(4096, 9) 070000000100000061"]);
  });

  it("is one of a module", async () => {
    const twice = OURS.replace(
      "export default",
      "export const more = s.migrate({}, () => {});\nexport default",
    );
    await expect(Module.load(twice, "ours")).rejects.toThrow("[LC0808]");
  });
});

const ROWS_OURS = `
import { schema, t, table } from "spacetimedb/server";
const s = schema({ ${TABLES} });
export const anything = s.migrateRows({ account: ${OLD} }, {
  account: (ctx, { id, owner }) => { ctx.db.account.insert({ id, owner }); },
});
export default s;`;

const ROWS_BY_NAMES = `
import { schema, t, table } from "spacetimedb/server";
const old = ${OLD};
const s = schema({ ${TABLES}, __old_account: old });
export const __migrate_account = s.reducer({ row: old.rowType }, (ctx, { row: { id, owner } }) => {
  ctx.db.account.insert({ id, owner });
});
export default s;`;

describe("functions for rows", () => {
  it("are the same module with and without `migrateRows`, byte by byte", async () => {
    const ours = (await Module.load(ROWS_OURS, "ours")).describe();
    expect(ours).toBe((await Module.load(ROWS_BY_NAMES, "npm")).describe());
    expect(ours).toBe((await Module.load(ROWS_BY_NAMES, "ours")).describe());
  });
});
