// Procedures of a module: their definitions in generated bindings, and the functions that call them.

import {
  type AlgebraicType,
  type CamelCase,
  ColumnBuilder,
  type Infer,
  type InferTypeOfParams,
  type IsAny,
  type ProductType,
  RowBuilder,
  toCamelCase,
} from "../core";
import type { BuilderOf } from "../core/type_inference";
import type { AnyColumn, AnyTypeBuilder } from "../core/untyped_builders";
import type { CallOptions } from "./calls";
import type { AnyCall } from "./reducers";
import type { AnyModule, AnyProcedure, AnyProcedures, ParamsObj } from "./remote_module";

/** A type, without what only columns can have. */
export type CoerceTypeBuilder<Col extends AnyTypeBuilder | AnyColumn> = BuilderOf<Col>;

/** Parameters by name, without what only columns can have. */
export type CoerceParams<Params extends ParamsObj> = {
  [Name in keyof Params & string]: BuilderOf<Params[Name]>;
};

/** Takes what only columns can have off the parameters. */
export function coerceParams<Params extends ParamsObj>(params: Params): CoerceParams<Params> {
  const builders: Record<string, AnyTypeBuilder> = {};
  for (const [name, param] of Object.entries(params)) {
    builders[name] = param instanceof ColumnBuilder ? param.typeBuilder : param;
  }
  return builders as CoerceParams<Params>;
}

type ProcedureCalls<Procedure extends AnyProcedure> = {
  [Def in Procedure as Def["accessorName"]]: (
    params: InferTypeOfParams<Def["params"]>,
  ) => Promise<Infer<Def["returnType"]>>;
};

/** A function for each procedure; the promise has its result. */
export type ProceduresView<RemoteModule> = IsAny<RemoteModule> extends true
  ? Record<string, AnyCall>
  : RemoteModule extends AnyModule
    ? ProcedureCalls<RemoteModule["procedures"][number]>
    : never;

/** A procedure as bindings define it. */
interface DefinedProcedure<Name extends string, Params extends ParamsObj, Result extends AnyTypeBuilder>
  extends AnyProcedure {
  accessorName: CamelCase<Name>;
  name: Name;
  params: CoerceParams<Params>;
  returnType: Result;
}

/** Defines a procedure, in generated bindings. */
export function procedureSchema<
  ProcedureName extends string,
  Params extends ParamsObj,
  ReturnType extends AnyTypeBuilder,
>(
  name: ProcedureName,
  params: Params,
  returnType: ReturnType,
): DefinedProcedure<ProcedureName, Params, ReturnType> {
  return { accessorName: toCamelCase(name), name, params: coerceParams(params), returnType };
}

/** Puts the procedures of a module together. */
export function procedures<const H extends readonly AnyProcedure[]>(...handles: H): { procedures: H };
/** Puts the procedures of a module together. */
export function procedures<const H extends readonly AnyProcedure[]>(handles: H): { procedures: H };
/** Puts the procedures of a module together. */
export function procedures(...handles: AnyProcedure[] | [AnyProcedure[]]): AnyProcedures {
  return { procedures: handles.flat() };
}

export interface ProcedureCaller {
  callProcedureWithParams(
    name: string,
    paramsType: ProductType,
    params: object,
    returnType: AlgebraicType,
    options?: CallOptions,
  ): Promise<any>;
}

/** The functions that call the procedures of a module. */
export function makeProceduresView(
  caller: ProcedureCaller,
  module: AnyProcedures,
  options?: CallOptions,
): object {
  const view: Record<string, (params?: object) => Promise<any>> = {};
  for (const { name, accessorName, params: declared, returnType } of module.procedures) {
    const paramsType = new RowBuilder(declared).algebraicType.value as ProductType;
    view[accessorName] = (params = {}) =>
      caller.callProcedureWithParams(name, paramsType, params, returnType.algebraicType, options);
  }
  return view;
}
