import { badValue, LightconeError } from "../core/errors";
import type { MethodOrAny, RawModuleDefV10, RawTableDefV10 } from "../core/module_def";
import { toPascalCase } from "../core/names";
import { type AnySchema, DefinitionBuilder } from "../core/schema";
import type { AnyTableSchema } from "../core/table";
import type { TableParts } from "../core/table_definition";
import { RowBuilder } from "../core/type_builders";
import type { RowObj } from "../core/type_inference";
import type { AlgebraicTypeType, ProductTypeType } from "../core/type_tree";
import { type AnyDeserializer, type AnyFunction, type AnySerializer, known } from "../core/untyped";
import type { AnyRowBuilder } from "../core/untyped_builders";
import { outboxDefinition } from "./outbox";

/** The method by which an export adds itself to the definition of its module. */
export const registerExport: unique symbol = Symbol("registerExport");

/** An export of a module. (The key stands in a type of its own, as declaration files would lose it elsewhere.) */
export interface ModuleExport
  extends Record<typeof registerExport, (registry: Registry, exportName: string) => void> {}

/** Options of every function of a module. */
export interface FunctionOptions {
  /** The name of the function in the database, if it is not the name of the export. */
  name?: string;
}

/** Options that begin with a name, which tells them from parameters. */
export type Named<Options extends FunctionOptions> = Options & { name: string };

export interface ReducerEntry {
  readonly fn: AnyFunction;
  readonly decode: AnyDeserializer;
  /** The product of the parameters. */
  readonly params: AlgebraicTypeType;
}

export interface ProcedureEntry extends ReducerEntry {
  readonly encode: AnySerializer;
}

export interface ViewEntry extends ReducerEntry {
  /** Writes an array of rows. */
  readonly encodeRows: AnySerializer;
  readonly isOption: boolean;
}

type PendingSchedule = {
  table: AnyTableSchema;
  tableName?: string;
  scheduleAtCol: number;
  target: () => unknown;
};

type PendingRoute = { handler: unknown; method: MethodOrAny; path: string };

/** The functions and tables of a module or submodule, as they are collected, and as they are called. */
export class Registry extends DefinitionBuilder {
  schemaType!: AnySchema;
  readonly reducers: ReducerEntry[] = [];
  readonly procedures: ProcedureEntry[] = [];
  readonly views: ViewEntry[] = [];
  readonly anonymousViews: ViewEntry[] = [];
  readonly handlers: AnyFunction[] = [];
  readonly submodules: { namespace: string; registry: Registry }[] = [];

  readonly #functionNames = new Set<string>();
  /** Names of exported functions, by which schedules and routes refer to them. */
  readonly #names = new Map<unknown, string>();
  readonly #tableNames = new Map<AnyTableSchema, string[]>();
  readonly #schedules: PendingSchedule[] = [];
  readonly #routes: PendingRoute[] = [];
  #registered = false;

  /** Adds all exports of a module but its schema, and resolves what refers to them. */
  registerExports(namespace: object, ignoreOthers = false): RawModuleDefV10 {
    if (this.#registered) return this.moduleDef;
    this.#registered = true;
    for (const [name, value] of Object.entries(namespace)) {
      if (name === "default") continue;
      const register = (value as Partial<ModuleExport> | null | undefined)?.[registerExport];
      if (typeof register !== "function") {
        if (ignoreOthers) continue;
        throw new TypeError(
          `exporting something that is not a spacetime export: \`${name}\`; move it to another file, or do not export it [LC0807]`,
        );
      }
      register.call(value, this, name);
    }
    this.#resolveSchedules();
    this.#resolveRoutes();
    return this.moduleDef;
  }

  defineTable(table: AnyTableSchema, accessorName: string): void {
    const names = this.#tableNames.get(table);
    if (names) names.push(accessorName);
    else this.#tableNames.set(table, [accessorName]);
    if (table.schedule) {
      const { scheduleAtCol, reducer } = table.schedule;
      this.#schedules.push({ table, tableName: accessorName, scheduleAtCol, target: reducer });
    }
  }

  override tableDefinition(parts: TableParts, accName: string): RawTableDefV10 {
    const def = super.tableDefinition(parts, accName);
    const { outbox } = parts.opts;
    if (outbox !== undefined) {
      this.moduleDef.outboxes ??= [];
      this.moduleDef.outboxes.push(outboxDefinition(parts, outbox, def.sourceName));
    }
    return def;
  }

  /** Lets a reducer hear of the results of a table's messages. */
  onResult(table: AnyTableSchema, reducer: string): void {
    const names = this.#tableNames.get(table) ?? [];
    const outboxes = this.moduleDef.outboxes?.filter(({ tableName }) => names.includes(tableName)) ?? [];
    if (outboxes.length === 0) {
      throw badValue(`the table of \`onResult\` of \`${reducer}\` is no outbox table of this module`);
    }
    for (const outbox of outboxes) {
      const { tableName, onResultReducer: other } = outbox;
      if (other !== undefined) throw badValue(`${other} and ${reducer} both have \`onResult: ${tableName}\``);
      outbox.onResultReducer = reducer;
    }
  }

  defineFunction(name: string, exported: unknown): void {
    if (this.#functionNames.has(name)) {
      throw new LightconeError(
        "LC0808",
        `There is already a reducer, procedure, view or handler named '${name}'`,
      );
    }
    this.#functionNames.add(name);
    this.#names.set(exported, name);
  }

  /** Registers the named type that stands for the parameters of a function; gives the parameters themselves. */
  defineParams(exportName: string, params: RowObj | AnyRowBuilder): ProductTypeType {
    const builder = params instanceof RowBuilder ? params : new RowBuilder(params);
    builder.typeName ??= toPascalCase(exportName);
    return this.productOf(this.register(builder));
  }

  schedule(table: AnyTableSchema, exported: unknown): void {
    if (table.scheduleAtCol === undefined) {
      throw new LightconeError("LC0805", "The table of `onSchedule` needs a column of type t.scheduleAt()");
    }
    this.#schedules.push({ table, scheduleAtCol: table.scheduleAtCol, target: () => exported });
  }

  route(route: PendingRoute): void {
    this.#routes.push(route);
  }

  #resolveSchedules(): void {
    for (const { table, tableName, scheduleAtCol, target } of this.#schedules) {
      const tableNames = tableName === undefined ? (this.#tableNames.get(table) ?? []) : [tableName];
      if (tableNames.length === 0) {
        throw new LightconeError("LC0805", "The table of `onSchedule` is not in the schema of this module");
      }
      const functionName = this.#names.get(target());
      if (functionName === undefined) {
        throw new TypeError(
          `Table ${tableNames[0]} defines a schedule, but it seems like the associated function was not exported. [LC0805]`,
        );
      }
      for (const name of tableNames) {
        this.moduleDef.schedules.push({
          sourceName: undefined,
          tableName: name,
          scheduleAtCol,
          functionName,
        });
      }
    }
  }

  #resolveRoutes(): void {
    for (const { handler, method, path } of this.#routes) {
      const handlerFunction = this.#names.get(handler);
      if (handlerFunction === undefined) {
        throw new LightconeError("LC0809", `The handler of route '${path}' is not exported`);
      }
      this.moduleDef.httpRoutes.push({ handlerFunction, method, path });
    }
  }
}

/** Gives a function without a name that of its export, for traces. */
function nameFunction(fn: AnyFunction, name: string): void {
  if (fn.name === "") Object.defineProperty(fn, "name", { value: name, configurable: true });
}

/** Makes a function an export of a module. */
export function asExport<F extends AnyFunction>(
  fn: F,
  register: (registry: Registry, exportName: string, exported: F) => void,
): F & ModuleExport {
  // A function of its own: the same one may be exported under several names.
  const exported = known<F & ModuleExport>((...args: unknown[]) => fn(...args));
  exported[registerExport] = (registry, exportName) => {
    nameFunction(fn, exportName);
    register(registry, exportName, exported);
  };
  return exported;
}
