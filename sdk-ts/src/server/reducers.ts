import { AlgebraicType } from "../core/algebraic_type";
import { deserializerOf } from "../core/codec";
import type { Lifecycle } from "../core/module_def";
import type { AnySchema } from "../core/schema";
import type { TableOfArgument } from "../core/table";
import type { RowBuilder } from "../core/type_builders";
import type { RowObj } from "../core/type_inference";
import type { AnyFunction } from "../core/untyped";
import type { AnyRowBuilder } from "../core/untyped_builders";
import type { ParamsObj, Reducer } from "./ctx_types";
import { asExport, type FunctionOptions, type ModuleExport, type Registry } from "./registry";

/** A reducer, to be exported. */
export interface ReducerExport<S extends AnySchema, Params extends ParamsObj>
  extends ModuleExport,
    Reducer<S, Params> {}

/** Options of a reducer. */
export interface ReducerOptions<Params extends ParamsObj = ParamsObj> extends FunctionOptions {
  /** The table whose rows, when due, call this reducer. */
  onSchedule?: TableOfArgument<Params>;
  /**
   * The outbox table of whose messages' results this reducer hears. Its parameters are a row of the table, and
   * `t.result(t.unit(), t.string())`. The name is a guess, as `remoteReducer` says.
   */
  onResult?: TableOfArgument<{ row: Extract<Params[keyof Params], RowBuilder<any>> }>;
}

const UNIT: AlgebraicType = { tag: "Product", value: { elements: [] } };

export function makeReducerExport(
  opts: ReducerOptions | undefined,
  params: RowObj | AnyRowBuilder,
  fn: AnyFunction,
  lifecycle?: Lifecycle,
): AnyFunction & ModuleExport {
  return asExport(fn, (registry, exportName, exported) =>
    registerReducer(registry, exportName, exported, opts, params, fn, lifecycle),
  );
}

export function registerReducer(
  registry: Registry,
  exportName: string,
  exported: unknown,
  opts: ReducerOptions | undefined,
  params: RowObj | AnyRowBuilder,
  fn: AnyFunction,
  lifecycle: Lifecycle | undefined,
): void {
  registry.defineFunction(exportName, exported);
  const type = registry.defineParams(exportName, params);
  const { moduleDef } = registry;
  moduleDef.reducers.push({
    sourceName: exportName,
    params: type,
    visibility: { tag: "ClientCallable" },
    okReturnType: UNIT,
    errReturnType: AlgebraicType.String,
  });
  if (opts?.name !== undefined) registry.addExplicitName("Function", exportName, opts.name);
  if (lifecycle) moduleDef.lifeCycleReducers.push({ lifecycleSpec: lifecycle, functionName: exportName });
  if (opts?.onSchedule) registry.schedule(opts.onSchedule, exported);
  if (opts?.onResult) registry.onResult(opts.onResult, exportName);
  const product = AlgebraicType.Product(type);
  registry.reducers.push({ fn, params: product, decode: deserializerOf(product, registry.typespace) });
}
