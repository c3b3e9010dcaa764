// Types of the parameters of calls.

import type { Infer, InferTypeOfParams, Prettify } from "../core";
import type { AnyProcedure } from "./procedures";
import type { AnyReducer } from "./reducers";

export type IsEmptyObject<T> = [keyof T] extends [never] ? true : false;

/** Nothing for a call without parameters. */
export type MaybeParams<T> = IsEmptyObject<T> extends true ? [] : [params: T];

export type ParamsType<R extends AnyReducer> = MaybeParams<Prettify<InferTypeOfParams<R["params"]>>>;

export type ProcedureParamsType<P extends AnyProcedure> = MaybeParams<
  Prettify<InferTypeOfParams<P["params"]>>
>;

export type ProcedureReturnType<P extends AnyProcedure> = Infer<P["returnType"]>;
