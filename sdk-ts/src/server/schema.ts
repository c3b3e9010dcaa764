// The schema of a module: its tables, and the ways to define its functions.

import { preferGenerated } from "../core/codec";
import { generateSerializer } from "../core/codegen_write";
import { LightconeError } from "../core/errors";
import { CaseConversionPolicy, type Lifecycle, type RawModuleDefV10 } from "../core/module_def";
import { type AnySchema, registerTables, type SchemaOf } from "../core/schema";
import type { AnyTableSchema } from "../core/table";
import { RowBuilder, TypeBuilder } from "../core/type_builders";
import type { AnyFunction } from "../core/untyped";
import type { AnyTypeBuilder } from "../core/untyped_builders";
import { installGlobals } from "./console";
import type { ParamsObj, Reducer } from "./ctx_types";
import { makeHooks } from "./hooks";
import {
  type HandlerFn,
  type HttpHandlerExport,
  makeHttpHandlerExport,
  makeHttpRouterExport,
  type Router,
} from "./http_handlers";
import {
  type MigrationFn,
  makeMigrationExport,
  makeRowMigrationsExport,
  type OldTables,
  type RowMigrations,
} from "./migration";
import {
  makeProcedureExport,
  type ProcedureExport,
  type ProcedureFn,
  type ProcedureOptions,
} from "./procedures";
import { makeReducerExport, type ReducerExport, type ReducerOptions } from "./reducers";
import { type FunctionOptions, type ModuleExport, type Named, Registry, registerExport } from "./registry";
import { moduleHooks } from "./sys";
import {
  type AnonymousViewCtx,
  type HasViewResult,
  type KeyErrors,
  makeViewExport,
  type ViewCtx,
  type ViewExport,
  type ViewFunction,
  type ViewOptions,
  type ViewResult,
} from "./views";

installGlobals();
preferGenerated(generateSerializer);

/** A schema inside of the SDK. */
export const registryOf: unique symbol = Symbol("registryOf");

/** A function that is defined by itself, or with options before it. */
interface DefinesNamed<Options extends FunctionOptions, Fn, Export> {
  (fn: Fn): Export;
  (opts: Named<Options>, fn: Fn): Export;
}

type DefinesLifecycle<S extends AnySchema> = DefinesNamed<
  ReducerOptions<{}>,
  Reducer<S, {}>,
  ReducerExport<S, {}>
>;

interface DefinesReducers<S extends AnySchema> extends DefinesLifecycle<S> {
  <Params extends ParamsObj>(params: Params, fn: Reducer<S, Params>): ReducerExport<S, Params>;
  <Params extends ParamsObj>(
    opts: ReducerOptions<Params>,
    params: Params,
    fn: Reducer<S, Params>,
  ): ReducerExport<S, Params>;
}

/** The arguments behind the options of a procedure: its parameters, if any, its result, and its function. */
type Definition<S extends AnySchema, Params extends ParamsObj, Result extends AnyTypeBuilder> = [
  ret: Result,
  fn: ProcedureFn<S, Params, Result>,
];

interface DefinesProcedures<S extends AnySchema> {
  <Result extends AnyTypeBuilder>(...definition: Definition<S, {}, Result>): ProcedureExport<S, {}, Result>;
  <Params extends ParamsObj, Result extends AnyTypeBuilder>(
    params: Params,
    ...definition: Definition<S, Params, Result>
  ): ProcedureExport<S, Params, Result>;
  <Result extends AnyTypeBuilder>(
    opts: Named<ProcedureOptions<{}, Result>>,
    ...definition: Definition<S, {}, Result>
  ): ProcedureExport<S, {}, Result>;
  <Params extends ParamsObj, Result extends AnyTypeBuilder>(
    opts: ProcedureOptions<Params, Result>,
    params: Params,
    ...definition: Definition<S, Params, Result>
  ): ProcedureExport<S, Params, Result>;
}

interface DefinesViews<Ctx> {
  <Ret extends ViewResult, F extends ViewFunction<Ctx, {}, Ret>>(
    opts: ViewOptions,
    ret: Ret,
    fn: F,
    ..._: KeyErrors<Ret>
  ): ViewExport<F> & HasViewResult<Ret>;
  /** With parameters: the published package has none yet, so the order is that of procedures. */
  <Params extends ParamsObj, Ret extends ViewResult, F extends ViewFunction<Ctx, Params, Ret>>(
    opts: ViewOptions,
    params: Params,
    ret: Ret,
    fn: F,
  ): ViewExport<F> & HasViewResult<Ret>;
}

/** The tables of a module, and the ways to define its functions. Must be the default export of the module. */
export class Schema<S extends AnySchema> {
  readonly [registryOf]: Registry;

  constructor(registry: Registry) {
    this[registryOf] = registry;
  }

  /** Registers the exports of a module, and gives its definition. */
  buildRawModuleDefV10(exports: object, opts?: { ignoreNonModuleExports?: boolean }): RawModuleDefV10 {
    return this[registryOf].registerExports(exports, opts?.ignoreNonModuleExports);
  }

  get moduleDef(): RawModuleDefV10 {
    return this[registryOf].moduleDef;
  }

  get typespace(): RawModuleDefV10["typespace"] {
    return this[registryOf].typespace;
  }

  /** The tables, with their types. */
  get schemaType(): S {
    return this[registryOf].schemaType as S;
  }

  /**
   * A reducer: a function that clients call, and that changes tables. All of its changes happen, or, if it throws, none.
   *
   * ```ts
   * export const add = spacetimedb.reducer({ name: t.string() }, (ctx, { name }) => {
   *   ctx.db.person.insert({ id: 0n, name });
   * });
   * ```
   */
  readonly reducer: DefinesReducers<S> = (...args: unknown[]) => {
    const { opts, params, fn } = functionArguments(args);
    return makeReducerExport(opts, params, fn);
  };

  /** Runs once, when the module is first published. */
  readonly init: DefinesLifecycle<S> = lifecycle("Init");

  /** Runs when a client connects; an error refuses the connection. */
  readonly clientConnected: DefinesLifecycle<S> = lifecycle("OnConnect");

  /** Runs when a client is gone. */
  readonly clientDisconnected: DefinesLifecycle<S> = lifecycle("OnDisconnect");

  /**
   * The function that brings the rows of changed tables into the new ones, when a module is published whose tables the database
   * cannot change by itself (docs/migrations.md). It runs once, in the transaction of the update. Of Lightcone: a module with the
   * package `spacetimedb` exports a reducer `__migrate` and declares tables `__old_…` instead.
   *
   * ```ts
   * const old = { person: table({}, { id: t.u64().primaryKey().autoInc(), name: t.string() }) };
   * export const migrate = spacetimedb.migrate(old, (ctx) => {
   *   for (const { id, name } of ctx.old.person.iter()) ctx.db.person.insert({ id, fullName: name });
   * });
   * ```
   *
   * @param old The tables that change, as the module declared them that is published now.
   */
  readonly migrate = <const Old extends OldTables>(old: Old, fn: MigrationFn<S, Old>): ModuleExport =>
    makeMigrationExport(old, fn);

  /**
   * Functions that make new rows of each row of changed tables, one by one, while the published module goes on running
   * (docs/migrations.md). What one makes follows from its row: it inserts, and reads nothing. Rows of tables without one go with
   * them. Of Lightcone: a module with the package `spacetimedb` exports reducers `__migrate_…`, which take such a row, instead.
   *
   * ```ts
   * const old = { person: table({}, { id: t.u64().primaryKey().autoInc(), name: t.string() }) };
   * export const migrate = spacetimedb.migrateRows(old, {
   *   person: (ctx, { id, name }) => {
   *     ctx.db.person.insert({ id, fullName: name });
   *   },
   * });
   * ```
   *
   * @param old The tables that change, as the module declared them that is published now.
   */
  readonly migrateRows = <const Old extends OldTables>(
    old: Old,
    functions: RowMigrations<S, Old>,
  ): ModuleExport => makeRowMigrationsExport(old, functions as Record<string, AnyFunction | undefined>);

  /** A view: rows that are computed from tables, for each caller. */
  readonly view: DefinesViews<ViewCtx<S>> = viewDefiner(false);

  /** A view that is the same for all callers. */
  readonly anonymousView: DefinesViews<AnonymousViewCtx<S>> = viewDefiner(true);

  /** A procedure: a function that clients call, which returns a value, and may make requests and transactions. */
  readonly procedure: DefinesProcedures<S> = (...args: any[]) => {
    const fn = args.pop();
    const ret = args.pop();
    if (args.length === 2) return makeProcedureExport(args[0], args[1], ret, fn);
    if (args.length === 1 && isOptions(args[0])) return makeProcedureExport(args[0], {}, ret, fn);
    return makeProcedureExport(undefined, args[0] ?? {}, ret, fn);
  };

  /** A function that answers HTTP requests; `httpRouter` says which. */
  readonly httpHandler: DefinesNamed<FunctionOptions, HandlerFn<S>, HttpHandlerExport<S>> = (
    ...args: any[]
  ) => makeHttpHandlerExport(args.length === 1 ? undefined : args[0], args.at(-1));

  /** Which handler answers which requests. */
  httpRouter(router: Router): ModuleExport {
    return makeHttpRouterExport(router);
  }

  /** Several exports as one; their names are the keys. */
  exportGroup(exports: Record<string, ModuleExport>): ModuleExport {
    return {
      [registerExport](registry) {
        for (const [name, item] of Object.entries(exports)) item[registerExport](registry, name);
      },
    };
  }

  /** Rules about which rows clients see. */
  clientVisibilityFilter = {
    /** Clients see the rows of a table that this query gives. */
    sql: (filter: string): ModuleExport => ({
      [registerExport](registry) {
        registry.moduleDef.rowLevelSecurity.push({ sql: filter });
      },
    }),
  };
}

function viewDefiner(isAnonymous: boolean): DefinesViews<any> {
  return (opts: ViewOptions, ...definition: any[]) => {
    const [ret, fn] = definition.slice(-2);
    return makeViewExport(opts, definition.length > 2 ? definition[0] : {}, ret, fn, isAnonymous);
  };
}

/** A function that defines a reducer which the host calls. */
function lifecycle(tag: Lifecycle["tag"]): (...args: any[]) => AnyFunction & ModuleExport {
  return (...args) => makeReducerExport(args.length === 1 ? undefined : args[0], {}, args.at(-1), { tag });
}

// By definition and not as a method, so that the type declarations of this package do not mention the host's module.
Object.defineProperty(Schema.prototype, moduleHooks, {
  value(this: Schema<any>, exports: object) {
    const registry = this[registryOf];
    registry.registerExports(exports);
    return makeHooks(registry);
  },
});

function isOptions(value: unknown): value is ReducerOptions {
  if (typeof value !== "object" || value === null) return false;
  const { name, onSchedule, onResult } = value as Record<"name" | "onSchedule" | "onResult", unknown>;
  return typeof name === "string" || onSchedule !== undefined || onResult !== undefined;
}

/** Tells the ways apart in which a reducer can be defined: `(fn)`, `(params, fn)`, `(opts, fn)`, `(opts, params, fn)`. */
function functionArguments(args: any[]): { opts: ReducerOptions | undefined; params: any; fn: AnyFunction } {
  const fn = args.at(-1);
  if (typeof fn !== "function") {
    throw new LightconeError("LC0810", "the last argument of `reducer` must be a function");
  }
  if (args.length === 1) return { opts: undefined, params: {}, fn };
  if (args.length === 3) return { opts: args[0], params: args[1], fn };
  if (args[0] instanceof RowBuilder || args[0] instanceof TypeBuilder || !isOptions(args[0])) {
    return { opts: undefined, params: args[0], fn };
  }
  return { opts: args[0], params: {}, fn };
}

/** The tables of a schema. */
export type InferSchema<SchemaDef extends Schema<any>> = SchemaDef extends Schema<infer S> ? S : never;

/** Settings of a module. */
export interface ModuleSettings {
  /** The conversion of names for the database; `SnakeCase` by default. */
  CASE_CONVERSION_POLICY?: CaseConversionPolicy;
}

/** A module inside of another one: what `import * as lib from "…"` gives. */
type Submodule<S extends AnySchema = any> = { default: Schema<S> };

/** The parts of a schema, by name. */
type Entries = Record<string, AnyTableSchema | (Submodule & Record<string, unknown>)>;

/** All but the submodules: a table with columns that are not known yet is surely none of these. */
type TablesIn<E extends Entries> = {
  [Name in keyof E as E[Name] extends Submodule ? never : Name]: Exclude<E[Name], Submodule>;
};

type SubmodulesIn<E extends Entries> = {
  [Name in keyof E as E[Name] extends Submodule ? Name : never]: E[Name] extends Submodule<infer S>
    ? // For `lightcone/typed`, which has nothing but types.
      S & { moduleExports?: E[Name] }
    : never;
};

/** The schema with these tables and submodules. */
type SchemaWith<E extends Entries> = SchemaOf<TablesIn<E>> & { namespaces: SubmodulesIn<E> };

function isSubmodule(entry: Entries[string]): entry is Submodule {
  return (entry as Partial<Submodule>).default instanceof Schema;
}

/**
 * Defines the tables of a module.
 *
 * ```ts
 * const spacetimedb = schema({
 *   person: table({ public: true }, { id: t.u64().primaryKey().autoInc(), name: t.string() }),
 * });
 * export default spacetimedb;
 * ```
 */
export function schema<const H extends Entries>(
  entries: H,
  moduleSettings?: ModuleSettings,
): Schema<SchemaWith<H>> {
  const registry = new Registry();
  const policy = moduleSettings?.CASE_CONVERSION_POLICY;
  if (policy) registry.moduleDef.caseConversionPolicy = policy;
  const tables: Record<string, AnyTableSchema> = {};
  const namespaces: Record<string, AnySchema> = {};
  for (const [name, entry] of Object.entries<Entries[string]>(entries)) {
    if (isSubmodule(entry)) {
      namespaces[name] = addSubmodule(registry, name, entry);
    } else {
      tables[name] = entry;
      registry.defineTable(entry, name);
    }
  }
  registry.schemaType = { tables: registerTables(registry, tables), namespaces };
  return new Schema(registry);
}

/** Adds a module under a namespace; returns its schema. */
function addSubmodule(outer: Registry, namespace: string, exports: Submodule): AnySchema {
  const registry = exports.default[registryOf];
  // A submodule is a whole file, which may also export helpers.
  const module = registry.registerExports(exports, true);
  outer.moduleDef.submodules.push({ namespace, module });
  outer.submodules.push({ namespace, registry });
  return registry.schemaType;
}

export { CaseConversionPolicy };
