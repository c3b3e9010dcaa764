// Calls from components. A call made before the provider has its connection waits for it.

import * as React from "react";
import type {
  AnyProcedure,
  AnyReducer,
  CallOptions,
  ParamsType,
  ProcedureParamsType,
  ProcedureReturnType,
} from "../client";
import { WaitingCalls } from "../session/waiting_calls";
import { useSpacetimeDB } from "./provider";
import { useLatest } from "./use_latest";

function useCall(
  kind: "reducers" | "procedures",
  def: AnyReducer | AnyProcedure,
  options: CallOptions | undefined,
): (...params: unknown[]) => Promise<any> {
  const connection = useSpacetimeDB().getConnection();
  const [calls] = React.useState(() => new WaitingCalls());
  React.useEffect(() => calls.use(connection), [connection, calls]);
  const limits = useLatest(options);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the name stands for the definition
  return React.useMemo(() => calls.to(kind, def, limits), [def.accessorName]);
}

/** A function that calls a reducer; its promise settles with the outcome. `options` are limits of the calls. */
export function useReducer<ReducerDef extends AnyReducer>(
  reducerDef: ReducerDef,
  options?: CallOptions,
): (...params: ParamsType<ReducerDef>) => Promise<void> {
  return useCall("reducers", reducerDef, options);
}

/** A function that calls a procedure; its promise has the result. `options` are limits of the calls. */
export function useProcedure<ProcedureDef extends AnyProcedure>(
  procedureDef: ProcedureDef,
  options?: CallOptions,
): (...params: ProcedureParamsType<ProcedureDef>) => Promise<ProcedureReturnType<ProcedureDef>> {
  return useCall("procedures", procedureDef, options);
}
