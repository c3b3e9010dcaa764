// Calls from components. A call made before the provider has its connection waits for it.

import * as React from "react";
import type {
  DbConnectionImpl,
  ParamsType,
  ProcedureParamsType,
  ProcedureReturnType,
  UntypedProcedureDef,
  UntypedReducerDef,
} from "../client";
import { useSpacetimeDB } from "./provider";

type Waiting = (connection: DbConnectionImpl<any>) => void;

/** A function that runs `work` with the connection, now or as soon as there is one. */
function useWithConnection(): <T>(work: (connection: DbConnectionImpl<any>) => Promise<T>) => Promise<T> {
  const connection = useSpacetimeDB().getConnection();
  const current = React.useRef(connection);
  const waiting = React.useRef<Waiting[]>([]);
  React.useEffect(() => {
    current.current = connection;
    if (connection) for (const start of waiting.current.splice(0)) start(connection);
  }, [connection]);
  return React.useCallback((work) => {
    if (current.current) return work(current.current);
    return new Promise((resolve, reject) => {
      waiting.current.push((found) => work(found).then(resolve, reject));
    });
  }, []);
}

/** A function that calls a reducer; its promise settles with the outcome. */
export function useReducer<ReducerDef extends UntypedReducerDef>(
  reducerDef: ReducerDef,
): (...params: ParamsType<ReducerDef>) => Promise<void> {
  const withConnection = useWithConnection();
  const { accessorName } = reducerDef;
  return React.useCallback(
    (...params: any[]) => withConnection(({ reducers }) => reducers[accessorName]!(params[0])),
    [withConnection, accessorName],
  );
}

/** A function that calls a procedure; its promise has the result. */
export function useProcedure<ProcedureDef extends UntypedProcedureDef>(
  procedureDef: ProcedureDef,
): (...params: ProcedureParamsType<ProcedureDef>) => Promise<ProcedureReturnType<ProcedureDef>> {
  const withConnection = useWithConnection();
  const { accessorName } = procedureDef;
  return React.useCallback(
    (...params: any[]) => withConnection(({ procedures }) => procedures[accessorName]!(params[0])),
    [withConnection, accessorName],
  );
}
