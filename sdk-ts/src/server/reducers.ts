import { AlgebraicType } from "../core/algebraic_type";
import { deserializerOf } from "../core/codec";
import type { Lifecycle } from "../core/module_def";
import type { UntypedSchemaDef } from "../core/schema";
import type { ScheduleTableForParams } from "../core/table";
import type { RowBuilder } from "../core/type_builders";
import type { RowObj } from "../core/type_inference";
import type { ParamsObj, Reducer } from "./ctx_types";
import { asExport, type ModuleExport, type Registry } from "./registry";

/** A reducer, to be exported. */
export interface ReducerExport<S extends UntypedSchemaDef, Params extends ParamsObj>
  extends Reducer<S, Params>,
    ModuleExport {}

export interface ReducerOpts<Params extends ParamsObj = ParamsObj> {
  /** The name of the reducer in the database, if it is not the name of the export. */
  name: string;
  /** The table whose rows, when due, call this reducer. */
  onSchedule?: ScheduleTableForParams<Params>;
}

export type ReducerOptsWithOptionalName<Params extends ParamsObj = ParamsObj> = Omit<
  ReducerOpts<Params>,
  "name"
> & { name?: string };

const UNIT: AlgebraicType = { tag: "Product", value: { elements: [] } };

export function makeReducerExport(
  opts: ReducerOptsWithOptionalName<any> | undefined,
  params: RowObj | RowBuilder<any>,
  fn: (ctx: any, args: any) => unknown,
  lifecycle?: Lifecycle,
): ReducerExport<any, any> {
  return asExport(fn as Reducer<any, any>, (registry, exportName, exported) =>
    registerReducer(registry, exportName, exported, opts, params, fn, lifecycle),
  );
}

function registerReducer(
  registry: Registry,
  exportName: string,
  exported: unknown,
  opts: ReducerOptsWithOptionalName<any> | undefined,
  params: RowObj | RowBuilder<any>,
  fn: (ctx: any, args: any) => unknown,
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
  if (opts?.onSchedule) registry.schedule(opts.onSchedule as any, exported);
  const product = AlgebraicType.Product(type);
  registry.reducers.push({ fn, params: product, decode: deserializerOf(product, registry.typespace) });
}
