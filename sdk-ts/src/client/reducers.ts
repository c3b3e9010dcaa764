// Reducers of a module: their definitions in generated bindings, and the functions that call them.

import {
  type CamelCase,
  type InferTypeOfParams,
  type IsAny,
  type ProductType,
  RowBuilder,
  toCamelCase,
} from "../core";
import type { CallOptions } from "./calls";
import type { AnyModule, AnyReducer, AnyReducers, ParamsObj } from "./remote_module";

/** A function that calls a reducer or procedure of any module. */
export type AnyCall<Result = any> = (params: any) => Promise<Result>;

type ReducerCalls<Reducer extends AnyReducer> = {
  [Def in Reducer as Def["accessorName"]]: (params: InferTypeOfParams<Def["params"]>) => Promise<void>;
};

/** A function for each reducer; the promise settles with its outcome. */
export type ReducersView<RemoteModule> = IsAny<RemoteModule> extends true
  ? Record<string, AnyCall<void>>
  : RemoteModule extends AnyModule
    ? ReducerCalls<RemoteModule["reducers"][number]>
    : never;

/** A call of a reducer, as the event of its transaction shows it. */
export interface ReducerEventInfo<Name extends string = string, Args extends object = object> {
  args: Args;
  name: Name;
}

/** A reducer as bindings define it. */
interface DefinedReducer<Name extends string, Params extends ParamsObj> {
  readonly accessorName: CamelCase<Name>;
  readonly reducerName: Name;
  readonly paramsSpacetimeType: ProductType;
  readonly params: RowBuilder<Params>;
}

type AnyDefinedReducer = DefinedReducer<any, any>;

/** The definition of a reducer in generated bindings. */
interface ReducerOf<Defined extends AnyDefinedReducer> {
  accessorName: Defined["accessorName"];
  name: Defined["reducerName"];
  params: Defined["params"]["row"];
  paramsType: Defined["paramsSpacetimeType"];
}

interface ReducersOf<Defined extends readonly AnyDefinedReducer[]> {
  reducers: { readonly [At in keyof Defined]: ReducerOf<Defined[At]> };
}

/** The reducers of a module. */
export interface Reducers<Module extends AnyReducers> {
  reducersType: Module;
}

/** Defines a reducer, in generated bindings. */
export function reducerSchema<ReducerName extends string, Params extends ParamsObj>(
  name: ReducerName,
  params: Params,
): DefinedReducer<ReducerName, Params> {
  const row = new RowBuilder<Params>(params);
  const paramsSpacetimeType: ProductType = row.algebraicType.value;
  return { accessorName: toCamelCase(name), reducerName: name, paramsSpacetimeType, params: row };
}

function reducerOf(defined: AnyDefinedReducer): AnyReducer {
  return {
    accessorName: defined.accessorName,
    name: defined.reducerName,
    params: defined.params.row,
    paramsType: defined.paramsSpacetimeType,
  };
}

/** Puts the reducers of a module together. */
export function reducers<const H extends readonly AnyDefinedReducer[]>(
  ...handles: H
): Reducers<ReducersOf<H>>;
/** Puts the reducers of a module together. */
export function reducers<const H extends readonly AnyDefinedReducer[]>(handles: H): Reducers<ReducersOf<H>>;
/** Puts the reducers of a module together. */
export function reducers(...handles: AnyDefinedReducer[] | [AnyDefinedReducer[]]): Reducers<AnyReducers> {
  return { reducersType: { reducers: handles.flat().map(reducerOf) } };
}

export interface ReducerCaller {
  callReducerWithParams(
    name: string,
    paramsType: ProductType,
    params: object,
    options?: CallOptions,
  ): Promise<void>;
}

/** The functions that call the reducers of a module. */
export function makeReducersView(caller: ReducerCaller, module: AnyReducers, options?: CallOptions): object {
  const view: Record<string, (params?: object) => Promise<void>> = {};
  for (const { name, accessorName, paramsType } of module.reducers) {
    view[accessorName] = (params = {}) => caller.callReducerWithParams(name, paramsType, params, options);
  }
  return view;
}
