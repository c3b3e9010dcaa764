// Reducers of a module: their definitions in generated bindings, and the functions that call them.

import {
  type CamelCase,
  type InferTypeOfParams,
  type ProductType,
  RowBuilder,
  type RowObj,
  toCamelCase,
} from "../core";
import type { CallOptions } from "./calls";
import type { SubscriptionEventContextInterface } from "./event_context";
import type { UntypedRemoteModule } from "./remote_module";

export type SubscriptionEventCallback<RemoteModule extends UntypedRemoteModule> = (
  ctx: SubscriptionEventContextInterface<RemoteModule>,
) => void;

/** Parameters by name. */
export type ParamsObj = RowObj;

type IfAny<T, Y, N> = 0 extends 1 & T ? Y : N;

/** A function for each reducer; the promise settles with its outcome. */
export type ReducersView<RemoteModule> = IfAny<
  RemoteModule,
  { [k: string]: (params: any) => Promise<void> },
  RemoteModule extends UntypedRemoteModule
    ? {
        [K in RemoteModule["reducers"][number] as K["accessorName"]]: (
          params: InferTypeOfParams<K["params"]>,
        ) => Promise<void>;
      }
    : never
>;

export type ReducerEventInfo<Name extends string = string, Args extends object = object> = {
  name: Name;
  args: Args;
};

export type UntypedReducerDef = {
  name: string;
  accessorName: string;
  params: ParamsObj;
  paramsType: ProductType;
};

export type UntypedReducersDef = { reducers: readonly UntypedReducerDef[] };

/** A reducer as bindings define it. */
export type ReducerSchema<ReducerName extends string, Params extends ParamsObj> = {
  readonly reducerName: ReducerName;
  readonly accessorName: CamelCase<ReducerName>;
  readonly params: RowBuilder<Params>;
  readonly paramsSpacetimeType: ProductType;
};

type ReducersToSchema<T extends readonly ReducerSchema<any, any>[]> = {
  reducers: {
    readonly [I in keyof T]: {
      name: T[I]["reducerName"];
      accessorName: T[I]["accessorName"];
      params: T[I]["params"]["row"];
      paramsType: T[I]["paramsSpacetimeType"];
    };
  };
};

/** The reducers of a module. */
export interface Reducers<ReducersDef extends UntypedReducersDef> {
  reducersType: ReducersDef;
}

export function reducerSchema<ReducerName extends string, Params extends ParamsObj>(
  name: ReducerName,
  params: Params,
): ReducerSchema<ReducerName, Params> {
  const builder = new RowBuilder<Params>(params);
  return {
    reducerName: name,
    accessorName: toCamelCase(name),
    params: builder,
    paramsSpacetimeType: builder.algebraicType.value as ProductType,
  };
}

export function reducersToSchema<const T extends readonly ReducerSchema<any, any>[]>(
  handles: T,
): ReducersToSchema<T> {
  const reducers = handles.map(({ reducerName, accessorName, params, paramsSpacetimeType }) => ({
    name: reducerName,
    accessorName,
    params: params.row,
    paramsType: paramsSpacetimeType,
  }));
  return { reducers } as unknown as ReducersToSchema<T>;
}

/** Puts the reducers of a module together. */
export function reducers<const H extends readonly ReducerSchema<any, any>[]>(
  ...handles: H
): Reducers<ReducersToSchema<H>>;
export function reducers<const H extends readonly ReducerSchema<any, any>[]>(
  handles: H,
): Reducers<ReducersToSchema<H>>;
export function reducers(...args: any[]): Reducers<any> {
  const handles: ReducerSchema<any, any>[] = Array.isArray(args[0]) ? args[0] : args;
  return { reducersType: reducersToSchema(handles) };
}

interface Caller {
  callReducerWithParams(
    name: string,
    paramsType: ProductType,
    params: object,
    options?: CallOptions,
  ): Promise<void>;
}

/** The functions that call the reducers of a module. */
export function makeReducersView(caller: Caller, module: UntypedReducersDef, options?: CallOptions): object {
  const view: Record<string, (params?: object) => Promise<void>> = {};
  for (const { name, accessorName, paramsType } of module.reducers) {
    view[accessorName] = (params = {}) => caller.callReducerWithParams(name, paramsType, params, options);
  }
  return view;
}
