// Calls with limits of their own: what `connection.withOptions` returns.

import type { RowTypedQuery } from "../core";
import type { AnyRow, AnyRowQuery } from "../core/untyped";
import type { CallOptions } from "./calls";
import type { DbConnectionImpl } from "./db_connection_impl";
import { makeProceduresView, type ProceduresView } from "./procedures";
import { makeReducersView, type ReducersView } from "./reducers";
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
  connection: DbConnectionImpl<RemoteModule>,
  remoteModule: RemoteModule,
  options: CallOptions,
  oneOffQuery: (query: string | AnyRowQuery) => Promise<any[]>,
): LimitedCalls<RemoteModule> {
  let reducers: object | undefined;
  let procedures: object | undefined;
  return {
    get reducers() {
      reducers ??= makeReducersView(connection, remoteModule, options);
      return reducers as ReducersView<RemoteModule>;
    },
    get procedures() {
      procedures ??= makeProceduresView(connection, remoteModule, options);
      return procedures as ProceduresView<RemoteModule>;
    },
    oneOffQuery,
  };
}
