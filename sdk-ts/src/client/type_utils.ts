// Types of the parameters of calls.

import type { Infer, InferTypeOfParams, Prettify } from "../core";
import type { AnyProcedure, AnyReducer } from "./remote_module";

/** Whether an object type has no fields. */
export type IsEmptyObject<T> = [keyof T] extends [never] ? true : false;

/** Nothing for a call without parameters. */
export type MaybeParams<T> = IsEmptyObject<T> extends true ? [] : [params: T];

/** The parameters of a function that calls a reducer. */
export type ParamsType<R extends AnyReducer> = MaybeParams<Prettify<InferTypeOfParams<R["params"]>>>;

/** The parameters of a function that calls a procedure. */
export type ProcedureParamsType<P extends AnyProcedure> = MaybeParams<
  Prettify<InferTypeOfParams<P["params"]>>
>;

/** The result of a procedure. */
export type ProcedureReturnType<P extends AnyProcedure> = Infer<P["returnType"]>;
