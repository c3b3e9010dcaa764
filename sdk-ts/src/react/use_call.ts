// Calls from components. A call made before the provider has its connection waits for it.

import * as React from "react";
import type {
  AnyProcedure,
  AnyReducer,
  CallOptions,
  LimitedCalls,
  ParamsType,
  ProcedureParamsType,
  ProcedureReturnType,
} from "../client";
import type { AnyConnection } from "../client/db_connection_impl";
import { useSpacetimeDB } from "./provider";

type Waiting = (connection: AnyConnection) => void;

/** A function that runs `work` with the connection, now or as soon as there is one. */
function useWithConnection(): <T>(work: (connection: AnyConnection) => Promise<T>) => Promise<T> {
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

/** The calls of a connection, with the limits of the latest rendering. */
function useLimits(options: CallOptions | undefined): (connection: AnyConnection) => LimitedCalls<any> {
  const latest = React.useRef(options);
  React.useEffect(() => {
    latest.current = options;
  });
  return React.useCallback(
    (connection) => (latest.current ? connection.withOptions(latest.current) : connection),
    [],
  );
}

/** A function that calls a reducer; its promise settles with the outcome. `options` are limits of the calls. */
export function useReducer<ReducerDef extends AnyReducer>(
  reducerDef: ReducerDef,
  options?: CallOptions,
): (...params: ParamsType<ReducerDef>) => Promise<void> {
  const withConnection = useWithConnection();
  const limited = useLimits(options);
  const { accessorName } = reducerDef;
  return React.useCallback(
    (...params: unknown[]) =>
      withConnection((connection) => limited(connection).reducers[accessorName]!(params[0])),
    [withConnection, limited, accessorName],
  );
}

/** A function that calls a procedure; its promise has the result. `options` are limits of the calls. */
export function useProcedure<ProcedureDef extends AnyProcedure>(
  procedureDef: ProcedureDef,
  options?: CallOptions,
): (...params: ProcedureParamsType<ProcedureDef>) => Promise<ProcedureReturnType<ProcedureDef>> {
  const withConnection = useWithConnection();
  const limited = useLimits(options);
  const { accessorName } = procedureDef;
  return React.useCallback(
    (...params: unknown[]) =>
      withConnection((connection) => limited(connection).procedures[accessorName]!(params[0])),
    [withConnection, limited, accessorName],
  );
}
