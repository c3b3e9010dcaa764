// Procedures of a module: their definitions in generated bindings, and the functions that call them.

import {
  type AlgebraicType,
  type CamelCase,
  ColumnBuilder,
  type Infer,
  type InferTypeOfParams,
  type ProductType,
  RowBuilder,
  type TypeBuilder,
  toCamelCase,
} from "../core";
import type { CallOptions } from "./calls";
import type { ParamsObj } from "./reducers";
import type { UntypedRemoteModule } from "./remote_module";

type CoerceTypeBuilder<Col extends TypeBuilder<any, any> | ColumnBuilder<any, any, any>> =
  Col extends ColumnBuilder<any, any, any> ? Col["typeBuilder"] : Col;

/** Parameters by name, without what only columns can have. */
export type CoerceParams<Params extends ParamsObj> = {
  [K in keyof Params & string]: CoerceTypeBuilder<Params[K]>;
};

/** Takes what only columns can have off the parameters. */
export function coerceParams<Params extends ParamsObj>(params: Params): CoerceParams<Params> {
  return Object.fromEntries(
    Object.entries(params).map(([name, type]) => [
      name,
      type instanceof ColumnBuilder ? type.typeBuilder : type,
    ]),
  ) as CoerceParams<Params>;
}

type IfAny<T, Y, N> = 0 extends 1 & T ? Y : N;

/** A function for each procedure; the promise has its result. */
export type ProceduresView<RemoteModule> = IfAny<
  RemoteModule,
  { [k: string]: (params: any) => Promise<any> },
  RemoteModule extends UntypedRemoteModule
    ? {
        [K in RemoteModule["procedures"][number] as K["accessorName"]]: (
          params: InferTypeOfParams<K["params"]>,
        ) => Promise<Infer<K["returnType"]>>;
      }
    : never
>;

export type UntypedProcedureDef = {
  name: string;
  accessorName: string;
  params: CoerceParams<ParamsObj>;
  returnType: TypeBuilder<any, any>;
};

export type UntypedProceduresDef = { procedures: readonly UntypedProcedureDef[] };

type ProcedureDef<Name extends string, Params extends ParamsObj, ReturnType extends TypeBuilder<any, any>> = {
  name: Name;
  accessorName: CamelCase<Name>;
  params: CoerceParams<Params>;
  returnType: ReturnType;
};

export function procedureSchema<
  ProcedureName extends string,
  Params extends ParamsObj,
  ReturnType extends TypeBuilder<any, any>,
>(
  name: ProcedureName,
  params: Params,
  returnType: ReturnType,
): ProcedureDef<ProcedureName, Params, ReturnType> {
  return { name, accessorName: toCamelCase(name), params: coerceParams(params), returnType };
}

/** Puts the procedures of a module together. */
export function procedures<const H extends readonly UntypedProcedureDef[]>(...handles: H): { procedures: H };
export function procedures<const H extends readonly UntypedProcedureDef[]>(handles: H): { procedures: H };
export function procedures(...args: any[]): { procedures: any } {
  return { procedures: Array.isArray(args[0]) ? args[0] : args };
}

interface Caller {
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
  caller: Caller,
  module: UntypedProceduresDef,
  options?: CallOptions,
): object {
  const view: Record<string, (params?: object) => Promise<any>> = {};
  for (const { name, accessorName, params: declared, returnType } of module.procedures) {
    const paramsType = new RowBuilder(declared as ParamsObj).algebraicType.value as ProductType;
    view[accessorName] = (params = {}) =>
      caller.callProcedureWithParams(name, paramsType, params, returnType.algebraicType, options);
  }
  return view;
}
