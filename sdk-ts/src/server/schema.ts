import { LightconeError } from "../core/errors";
import { CaseConversionPolicy, type RawModuleDefV10 } from "../core/module_def";
import { type TablesToSchema, tablesToSchema, type UntypedSchemaDef } from "../core/schema";
import type { UntypedTableSchema } from "../core/table";
import { RowBuilder, TypeBuilder } from "../core/type_builders";
import { installGlobals } from "./console";
import type { ParamsObj, Reducer } from "./ctx_types";
import { makeHooks } from "./hooks";
import {
  type HandlerFn,
  type HttpHandlerExport,
  type HttpHandlerOpts,
  makeHttpHandlerExport,
  makeHttpRouterExport,
  type Router,
} from "./http_handlers";
import {
  makeProcedureExport,
  type ProcedureExport,
  type ProcedureFn,
  type ProcedureOpts,
  type ProcedureOptsWithOptionalName,
} from "./procedures";
import {
  makeReducerExport,
  type ReducerExport,
  type ReducerOpts,
  type ReducerOptsWithOptionalName,
} from "./reducers";
import { type ModuleExport, Registry, registerExport } from "./registry";
import { moduleHooks } from "./sys";
import {
  type AnonymousViewFn,
  makeViewExport,
  type ValidateViewPrimaryKey,
  type ViewExport,
  type ViewFn,
  type ViewOpts,
  type ViewReturnTypeBuilder,
} from "./views";

installGlobals();

/** What is known of a schema, for the rest of the SDK. */
export const registryOf: unique symbol = Symbol("registryOf");

/** The tables of a module, and the ways to define its functions. Must be the default export of the module. */
export class Schema<S extends UntypedSchemaDef> {
  readonly [registryOf]: Registry;

  constructor(registry: Registry) {
    this[registryOf] = registry;
  }

  /** The tables, with their types. */
  get schemaType(): S {
    return this[registryOf].schemaType as S;
  }

  get moduleDef(): RawModuleDefV10 {
    return this[registryOf].moduleDef;
  }

  get typespace(): RawModuleDefV10["typespace"] {
    return this[registryOf].typespace;
  }

  /** Registers the exports of a module, and gives its definition. */
  buildRawModuleDefV10(exports: object, opts?: { ignoreNonModuleExports?: boolean }): RawModuleDefV10 {
    return this[registryOf].registerExports(exports, opts?.ignoreNonModuleExports);
  }

  reducer<Params extends ParamsObj>(params: Params, fn: Reducer<S, Params>): ReducerExport<S, Params>;
  reducer(fn: Reducer<S, {}>): ReducerExport<S, {}>;
  reducer<Params extends ParamsObj>(
    opts: ReducerOptsWithOptionalName<Params>,
    params: Params,
    fn: Reducer<S, Params>,
  ): ReducerExport<S, Params>;
  reducer(opts: ReducerOpts<{}>, fn: Reducer<S, {}>): ReducerExport<S, {}>;
  /**
   * A reducer: a function that clients call, and that changes tables. All of its changes happen, or, if it throws, none.
   *
   * ```ts
   * export const add = spacetimedb.reducer({ name: t.string() }, (ctx, { name }) => {
   *   ctx.db.person.insert({ id: 0n, name });
   * });
   * ```
   */
  reducer(...args: any[]): any {
    const { opts, params, fn } = functionArguments(args);
    return makeReducerExport(opts, params, fn);
  }

  init(fn: Reducer<S, {}>): ReducerExport<S, {}>;
  init(opts: ReducerOpts<{}>, fn: Reducer<S, {}>): ReducerExport<S, {}>;
  /** Runs once, when the module is first published. */
  init(...args: any[]): any {
    return this.#lifecycle("Init", args);
  }

  clientConnected(fn: Reducer<S, {}>): ReducerExport<S, {}>;
  clientConnected(opts: ReducerOpts<{}>, fn: Reducer<S, {}>): ReducerExport<S, {}>;
  /** Runs when a client connects; an error refuses the connection. */
  clientConnected(...args: any[]): any {
    return this.#lifecycle("OnConnect", args);
  }

  clientDisconnected(fn: Reducer<S, {}>): ReducerExport<S, {}>;
  clientDisconnected(opts: ReducerOpts<{}>, fn: Reducer<S, {}>): ReducerExport<S, {}>;
  /** Runs when a client is gone. */
  clientDisconnected(...args: any[]): any {
    return this.#lifecycle("OnDisconnect", args);
  }

  #lifecycle(tag: "Init" | "OnConnect" | "OnDisconnect", args: any[]): ReducerExport<any, any> {
    const [opts, fn] = args.length === 1 ? [undefined, args[0]] : args;
    return makeReducerExport(opts, {}, fn, { tag });
  }

  /** A view: rows that are computed from tables, for each caller. */
  view<Ret extends ViewReturnTypeBuilder, F extends ViewFn<S, {}, Ret>>(
    opts: ViewOpts,
    ret: Ret,
    fn: F,
    ..._: ValidateViewPrimaryKey<Ret>
  ): ViewExport<F> {
    return makeViewExport(opts, ret, fn, false);
  }

  /** A view that is the same for all callers. */
  anonymousView<Ret extends ViewReturnTypeBuilder, F extends AnonymousViewFn<S, {}, Ret>>(
    opts: ViewOpts,
    ret: Ret,
    fn: F,
    ..._: ValidateViewPrimaryKey<Ret>
  ): ViewExport<F> {
    return makeViewExport(opts, ret, fn, true);
  }

  procedure<Params extends ParamsObj, Ret extends TypeBuilder<any, any>>(
    params: Params,
    ret: Ret,
    fn: ProcedureFn<S, Params, Ret>,
  ): ProcedureExport<S, Params, Ret>;
  procedure<Ret extends TypeBuilder<any, any>>(
    ret: Ret,
    fn: ProcedureFn<S, {}, Ret>,
  ): ProcedureExport<S, {}, Ret>;
  procedure<Params extends ParamsObj, Ret extends TypeBuilder<any, any>>(
    opts: ProcedureOptsWithOptionalName<Params, Ret>,
    params: Params,
    ret: Ret,
    fn: ProcedureFn<S, Params, Ret>,
  ): ProcedureExport<S, Params, Ret>;
  procedure<Ret extends TypeBuilder<any, any>>(
    opts: ProcedureOpts<{}, Ret>,
    ret: Ret,
    fn: ProcedureFn<S, {}, Ret>,
  ): ProcedureExport<S, {}, Ret>;
  /** A procedure: a function that clients call, which returns a value, and may make requests and transactions. */
  procedure(...args: any[]): any {
    const fn = args.pop();
    const ret = args.pop() as TypeBuilder<any, any>;
    if (args.length === 2) return makeProcedureExport(args[0], args[1], ret, fn);
    if (args.length === 1 && isOptions(args[0])) return makeProcedureExport(args[0], {}, ret, fn);
    return makeProcedureExport(undefined, args[0] ?? {}, ret, fn);
  }

  httpHandler(fn: HandlerFn<S>): HttpHandlerExport<S>;
  httpHandler(opts: HttpHandlerOpts, fn: HandlerFn<S>): HttpHandlerExport<S>;
  /** A function that answers HTTP requests; `httpRouter` says which. */
  httpHandler(...args: any[]): any {
    const [opts, fn] = args.length === 1 ? [undefined, args[0]] : args;
    return makeHttpHandlerExport(opts, fn);
  }

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

// By definition and not as a method, so that the type declarations of this package do not mention the host's module.
Object.defineProperty(Schema.prototype, moduleHooks, {
  value(this: Schema<any>, exports: object) {
    const registry = this[registryOf];
    registry.registerExports(exports);
    return makeHooks(registry);
  },
});

function isOptions(value: any): boolean {
  return typeof value === "object" && (typeof value.name === "string" || value.onSchedule !== undefined);
}

/** Tells the ways apart in which a reducer can be defined: `(fn)`, `(params, fn)`, `(opts, fn)`, `(opts, params, fn)`. */
function functionArguments(args: any[]): { opts: any; params: any; fn: any } {
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

export interface ModuleSettings {
  /** How names become names in the database: `SnakeCase` unless told otherwise. */
  CASE_CONVERSION_POLICY?: CaseConversionPolicy;
}

/** A module inside of another one: what `import * as lib from "…"` gives. */
type SubmoduleNamespace = {
  default: Schema<any>;
  [key: string]: unknown;
};
type SchemaEntry = UntypedTableSchema | SubmoduleNamespace;

type ExtractTableEntries<H extends Record<string, SchemaEntry>> = {
  [K in keyof H as H[K] extends UntypedTableSchema ? K : never]: Extract<H[K], UntypedTableSchema>;
};

type ExtractSubmoduleSchemas<H extends Record<string, SchemaEntry>> = {
  [K in keyof H as H[K] extends { default: Schema<any> } ? K : never]: H[K] extends {
    default: Schema<infer S extends UntypedSchemaDef>;
  }
    ? S
    : never;
};

type SchemaDefForEntries<H extends Record<string, SchemaEntry>> = TablesToSchema<ExtractTableEntries<H>> & {
  namespaces: ExtractSubmoduleSchemas<H>;
};

function isSubmodule(entry: SchemaEntry): entry is SubmoduleNamespace {
  return (entry as any).default instanceof Schema;
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
export function schema<const H extends Record<string, SchemaEntry>>(
  entries: H,
  moduleSettings?: ModuleSettings,
): Schema<SchemaDefForEntries<H>> {
  const registry = new Registry();
  if (moduleSettings?.CASE_CONVERSION_POLICY) {
    registry.setCaseConversionPolicy(moduleSettings.CASE_CONVERSION_POLICY);
  }
  const tables: Record<string, UntypedTableSchema> = {};
  for (const [name, entry] of Object.entries<SchemaEntry>(entries)) {
    if (isSubmodule(entry)) {
      const submodule = entry.default[registryOf];
      // A submodule is a whole file, which may also export helpers.
      const module = submodule.registerExports(entry, true);
      registry.addSubmodule({ namespace: name, module });
      registry.submodules.push({ namespace: name, registry: submodule });
    } else {
      tables[name] = entry;
      registry.defineTable(entry, name);
    }
  }
  registry.schemaType = {
    ...tablesToSchema(registry, tables),
    namespaces: Object.fromEntries(
      registry.submodules.map(({ namespace, registry: submodule }) => [namespace, submodule.schemaType]),
    ),
  };
  return new Schema(registry);
}

export { CaseConversionPolicy };
