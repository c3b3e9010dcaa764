import { type AnySchema, registerTables, type SchemaOf } from "../core/schema";
import type { AnyTableSchema } from "../core/table";
import type { InferTypeOfRow } from "../core/type_inference";
import type { AnyFunction } from "../core/untyped";
import type { ReadonlyDbView, ReducerCtx } from "./ctx_types";
import { registerReducer } from "./reducers";
import { asExport, type ModuleExport } from "./registry";

/** The names by which the host knows the function, those for rows, and the tables as they were. */
const FUNCTION_NAME = "__migrate";
const ROW_FUNCTION_PREFIX = "__migrate_";
const OLD_PREFIX = "__old_";

/** Tables as the published module declares them, under its names for them. */
export type OldTables = Record<string, AnyTableSchema>;

/** The context of a migration function: the new tables in `db`, and the old ones in `old`. */
export type MigrationCtx<S extends AnySchema, Old extends OldTables> = ReducerCtx<S> & {
  /** The tables as they were, with their rows. They do not change any more. */
  readonly old: ReadonlyDbView<SchemaOf<Old>>;
};

/** A migration function. */
export type MigrationFn<S extends AnySchema, Old extends OldTables> = (ctx: MigrationCtx<S, Old>) => void;

/** The context of a function for rows: the new tables, to insert into, and nothing else. */
export type RowMigrationCtx<S extends AnySchema> = Omit<ReducerCtx<S>, "db" | "as"> & {
  /** The tables that the update makes. What a function makes must follow from its row, so it reads nothing. */
  readonly db: InsertableTablesOf<ReducerCtx<S>["db"]>;
};

/** Of each table, the way to insert. */
type InsertableTablesOf<Db> = {
  readonly [Name in keyof Db as Db[Name] extends { insert: AnyFunction } ? Name : never]: Db[Name] extends {
    insert: AnyFunction;
  }
    ? Pick<Db[Name], "insert">
    : never;
};

/** Functions for the rows of old tables, by the names of these. */
export type RowMigrations<S extends AnySchema, Old extends OldTables> = {
  readonly [Name in keyof Old]?: (ctx: RowMigrationCtx<S>, row: RowOf<Old[Name]>) => void;
};

type RowOf<Table extends AnyTableSchema> = InferTypeOfRow<Table["rowType"]["row"]>;

export function makeRowMigrationsExport(
  old: OldTables,
  functions: Record<string, AnyFunction | undefined>,
): ModuleExport {
  return asExport((() => undefined) as AnyFunction, (registry) => {
    const names = Object.keys(old);
    registerTables(registry, Object.fromEntries(names.map((name) => [OLD_PREFIX + name, old[name]!])));
    for (const name of names) {
      const fn = functions[name];
      if (fn === undefined) continue;
      const run = ((ctx: object, { row }: { row: object }) => fn(ctx, row)) as AnyFunction;
      const params = { row: old[name]!.rowType };
      registerReducer(registry, ROW_FUNCTION_PREFIX + name, run, undefined, params, run, undefined);
    }
  });
}

export function makeMigrationExport(old: OldTables, fn: AnyFunction): ModuleExport {
  const names = Object.keys(old);
  const run = (ctx: { db: Record<string, object> }): unknown => {
    const tables = names.map((name) => [name, ctx.db[OLD_PREFIX + name]] as const);
    // The context of a call is one object for all of them, but the host runs this in an instance of its own.
    const value = Object.freeze(Object.fromEntries(tables));
    return fn(Object.defineProperty(ctx, "old", { value, configurable: true }));
  };
  return asExport(run as AnyFunction, (registry, _exportName, exported) => {
    registerTables(registry, Object.fromEntries(names.map((name) => [OLD_PREFIX + name, old[name]!])));
    registerReducer(registry, FUNCTION_NAME, exported, undefined, {}, run as AnyFunction, undefined);
  });
}
