import { type AnySchema, registerTables, type SchemaOf } from "../core/schema";
import type { AnyTableSchema } from "../core/table";
import type { AnyFunction } from "../core/untyped";
import type { ReadonlyDbView, ReducerCtx } from "./ctx_types";
import { registerReducer } from "./reducers";
import { asExport, type ModuleExport } from "./registry";

/** The names by which the host knows the function, and the tables as they were. */
const FUNCTION_NAME = "__migrate";
const OLD_PREFIX = "__old_";

/** Tables as the published module declares them, under its names for them. */
export type OldTables = Record<string, AnyTableSchema>;

/** What a migration function gets: the new tables in `db`, and the old ones in `old`. */
export type MigrationCtx<S extends AnySchema, Old extends OldTables> = ReducerCtx<S> & {
  /** The tables as they were, with their rows. Nobody changes them any more. */
  readonly old: ReadonlyDbView<SchemaOf<Old>>;
};

export type MigrationFn<S extends AnySchema, Old extends OldTables> = (ctx: MigrationCtx<S, Old>) => void;

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
