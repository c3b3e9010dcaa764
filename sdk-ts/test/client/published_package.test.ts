// The client next to npm package `spacetimedb` 2.10.1: the same exports, the same SQL of typed queries, and types that
// fit where the published ones did.

import * as published from "spacetimedb";
import type * as publishedReact from "spacetimedb/react";
import { describe, expect, expectTypeOf, test } from "vitest";
import * as ours from "../../src/client";
import type { useTable } from "../../src/react";
import type { DbConnection } from "./bindings";

test("everything that the published package exports is there", () => {
  const missing = Object.keys(published).filter((name) => !(name in ours));
  // Classes of columns have other names here: they are made by `t`, never by name.
  expect(missing.filter((name) => !name.endsWith("ColumnBuilder"))).toEqual([]);
});

test.each(["angular", "react", "solid", "svelte", "tanstack", "vue"])("so it is in %s", async (entry) => {
  const names = Object.keys(await import(/* @vite-ignore */ `spacetimedb/${entry}`));
  const ours = await import(`../../src/${entry}/index.ts`);
  expect(names.length).toBeGreaterThan(3);
  expect(names.filter((name) => !(name in ours))).toEqual([]);
});

test("sizes are estimated as there, and types inside of themselves end", () => {
  const { AlgebraicType: A } = published;
  const unit = A.Product({ elements: [] });
  const types = [
    ...[A.Bool, A.I8, A.U16, A.F32, A.I64, A.String, A.U128, A.I256, unit],
    A.Array(A.U64),
    A.Array(unit),
    A.Sum({ variants: [] }),
    A.Sum({
      variants: [
        { name: "a", algebraicType: A.U8 },
        { name: "b", algebraicType: A.U64 },
      ],
    }),
    A.Product({
      elements: [
        { name: "a", algebraicType: A.Ref(0) },
        { name: "b", algebraicType: A.String },
      ],
    }),
  ];
  const typespace = { types: [A.U32] };
  for (const type of types) {
    expect(ours.bsatnBaseSize(typespace, type)).toBe(published.bsatnBaseSize(typespace, type));
  }
  const list = { types: [A.Product({ elements: [{ name: "next", algebraicType: A.Array(A.Ref(0)) }] })] };
  expect(ours.bsatnBaseSize(list, A.Ref(0))).toBe(4);
  expect(ours.bsatnBaseSize({ types: [] }, A.Ref(7))).toBe(0);
});

test("types that the published package names can be named", () => {
  expectTypeOf<ours.Message["tag"]>().toEqualTypeOf<published.Message["tag"]>();
  expectTypeOf<ours.SubscribeAppliedMessage>().toExtend<published.SubscribeAppliedMessage>();
  expectTypeOf<ReturnType<typeof useTable>>().toExtend<ReturnType<typeof publishedReact.useTable>>();
  expectTypeOf<published.ProcedureResultMessage>().toExtend<ours.ProcedureResultMessage>();
  expectTypeOf<ours.SubscriptionError>().toExtend<published.SubscriptionError>();
});

/** Tables and queries with one of the packages; they have the same interface. */
function queriesOf(sdk: typeof ours): Record<string, () => string> {
  const { t, table, schema, makeQueryBuilder, toSql, and, or, not, Identity, ConnectionId, Timestamp, Uuid } =
    sdk;
  const user = table(
    { name: "user_table" },
    t.row({
      id: t.u32().primaryKey(),
      fullName: t.string().name("full_name"),
      online: t.bool(),
      who: t.identity(),
      connection: t.connectionId(),
      at: t.timestamp(),
      uuid: t.uuid(),
      big: t.u256(),
      ratio: t.f64(),
    }),
  );
  const item = table({ name: "inv.items" }, { id: t.u32().unique(), owner: t.u32().index("btree") });
  const tables = makeQueryBuilder(schema({ user, item }).schemaType);
  const u = tables.user;
  return {
    all: () => toSql(u),
    method: () => u.toSql(),
    number: () => toSql(u.where((r) => r.id.eq(5))),
    text: () => toSql(u.where((r) => r.fullName.eq(`it's "q"`))),
    column: () => toSql(u.where((r) => r.online)),
    constants: () => toSql(u.where(() => true)) + toSql(u.where(() => false)),
    not: () => toSql(u.where((r) => r.online.eq(true).not())),
    and: () => toSql(u.where((r) => and(r.online.eq(true), r.id.lt(3), r.id.gte(1)))),
    nested: () => toSql(u.where((r) => or(r.online.eq(true), r.id.ne(3)).and(r.id.lte(1)))),
    notOr: () => toSql(u.where((r) => not(or(r.online.eq(true), r.id.ne(3))))),
    chain: () => toSql(u.where((r) => r.id.gt(3)).where((r) => r.id.eq(1).or(r.id.eq(2)))),
    identity: () => toSql(u.where((r) => r.who.eq(new Identity(255n)))),
    connectionId: () => toSql(u.where((r) => r.connection.eq(new ConnectionId(255n)))),
    timestamp: () => toSql(u.where((r) => r.at.eq(new Timestamp(1_739_788_245_123_456n)))),
    uuid: () => toSql(u.where((r) => r.uuid.eq(Uuid.parse("01888d6e-5c00-7000-8000-000000000000")))),
    big: () => toSql(u.where((r) => r.big.eq(2n ** 255n))),
    floats: () => toSql(u.where((r) => r.ratio.eq(1.5))) + toSql(u.where((r) => r.ratio.eq(1e300))),
    columns: () => toSql(u.where((r) => r.id.eq(r.id))),
    left: () => toSql(u.leftSemijoin(tables.item, (a, b) => a.id.eq(b.owner))),
    right: () => toSql(u.rightSemijoin(tables.item, (a, b) => a.id.eq(b.owner))),
    leftWhere: () =>
      toSql(
        u
          .where((r) => r.online.eq(true))
          .leftSemijoin(tables.item, (a, b) => a.id.eq(b.owner))
          .where((r) => r.id.eq(3)),
      ),
    rightWhere: () =>
      toSql(
        u
          .where((r) => r.online.eq(true))
          .rightSemijoin(tables.item, (a, b) => a.id.eq(b.owner))
          .where((r) => r.id.eq(3))
          .where((r) => r.owner.lt(2)),
      ),
  };
}

describe("typed queries give the same SQL", () => {
  const mine = queriesOf(ours);
  const theirs = queriesOf(published as unknown as typeof ours);
  test.each(Object.keys(mine))("%s", (name) => {
    expect(mine[name]!()).toBe(theirs[name]!());
  });
});

describe("typed queries on this side", () => {
  const { t, table, schema, makeQueryBuilder, evaluateBooleanExpr, getQueryWhereClause, Identity } = ours;
  const user = table({ name: "user" }, { id: t.u64(), name: t.string(), who: t.identity(), size: t.u32() });
  const tables = makeQueryBuilder(schema({ user }).schemaType);
  const row = { id: 5n, name: "b", who: new Identity(7n), size: 3 };
  const holds = (query: unknown): boolean => evaluateBooleanExpr(getQueryWhereClause(query)!, row);

  test.each<[string, boolean, unknown]>([
    ["equal", true, tables.user.where((r) => r.id.eq(5n))],
    ["not equal", false, tables.user.where((r) => r.id.ne(5n))],
    ["less", true, tables.user.where((r) => r.name.lt("c"))],
    ["at least", false, tables.user.where((r) => r.size.gte(4))],
    ["identity", true, tables.user.where((r) => r.who.eq(new Identity(7n)))],
    ["and", false, tables.user.where((r) => r.id.eq(5n).and(r.size.gt(3)))],
    ["or", true, tables.user.where((r) => r.id.eq(6n).or(r.size.lte(3)))],
    ["not", true, tables.user.where((r) => r.id.eq(6n).not())],
    ["never", false, tables.user.where(() => false)],
  ])("%s", (_, expected, query) => {
    expect(holds(query)).toBe(expected);
  });
});

describe("types", () => {
  test("of tables, rows, calls and callbacks", () => {
    type Db = DbConnection["db"];
    type Person = { id: number; name: string };
    expectTypeOf<Parameters<Parameters<Db["person"]["onUpdate"]>[0]>[2]>().toEqualTypeOf<Person>();
    expectTypeOf<ReturnType<Db["person"]["id"]["find"]>>().toEqualTypeOf<Person | null>();
    expectTypeOf<ReturnType<Db["person"]["count"]>>().toEqualTypeOf<bigint>();
    expectTypeOf<DbConnection["reducers"]["addPerson"]>().toEqualTypeOf<
      (params: { id: number; name: string }) => Promise<void>
    >();
    expectTypeOf<DbConnection["procedures"]["doubleIt"]>().toEqualTypeOf<
      (params: { value: number }) => Promise<bigint>
    >();
    expectTypeOf<Db["mark"]>().toHaveProperty("onDelete");
    expectTypeOf<Db["mark"]>().not.toHaveProperty("byName");
  });
});
