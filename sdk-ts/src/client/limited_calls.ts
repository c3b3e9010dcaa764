// Calls with limits of their own: what `connection.withOptions` returns.

import type { RowTypedQuery } from "../core";
import type { AnyRow } from "../core/untyped";
import type { AnyRowQuery } from "../core/untyped_query";
import type { CallOptions } from "./calls";
import { makeProceduresView, type ProcedureCaller, type ProceduresView } from "./procedures";
import { makeReducersView, type ReducerCaller, type ReducersView } from "./reducers";
import type { AnyModule } from "./remote_module";

/** Calls with limits, made by `withOptions`. */
export interface LimitedCalls<RemoteModule extends AnyModule> {
  readonly reducers: ReducersView<RemoteModule>;
  readonly procedures: ProceduresView<RemoteModule>;
  oneOffQuery<Row>(query: RowTypedQuery<Row, any>): Promise<Row[]>;
  oneOffQuery(query: string): Promise<AnyRow[]>;
}

/** Mostly for one call, so that only what it needs is made. */
export function makeLimitedCalls<RemoteModule extends AnyModule>(
  caller: ReducerCaller & ProcedureCaller,
  remoteModule: RemoteModule,
  options: CallOptions,
  oneOffQuery: (query: string | AnyRowQuery) => Promise<any[]>,
): LimitedCalls<RemoteModule> {
  let reducers: object | undefined;
  let procedures: object | undefined;
  return {
    get reducers() {
      reducers ??= makeReducersView(caller, remoteModule, options);
      return reducers as ReducersView<RemoteModule>;
    },
    get procedures() {
      procedures ??= makeProceduresView(caller, remoteModule, options);
      return procedures as ProceduresView<RemoteModule>;
    },
    oneOffQuery,
  };
}
