// The messages of a server as the published package names them, for code that mentions these types. The connection itself
// works on those of `wire`, whose rows are not decoded yet.

import type { ComparablePrimitive } from "../core";
import type { ReducerOutcome } from "./wire";

interface RowChange {
  type: "insert" | "delete";
  rowId: ComparablePrimitive;
  row: Record<string, any>;
}

interface TableChanges {
  tableName: string;
  operations: RowChange[];
}

interface Tagged<Tag extends string> {
  tag: Tag;
}

interface OfQuerySet {
  querySetId: number;
}

interface OfRequest {
  requestId: number;
}

interface WithTables {
  tableUpdates: TableChanges[];
}

/** Rows changed. */
export type TransactionUpdateMessage = Tagged<"TransactionUpdate"> & WithTables;
/** A subscription has its rows. */
export type SubscribeAppliedMessage = Tagged<"SubscribeApplied"> & OfQuerySet & WithTables;
/** A subscription has ended. */
export type UnsubscribeAppliedMessage = Tagged<"UnsubscribeApplied"> & OfQuerySet & WithTables;
/** A subscription was refused, or given up. */
export type SubscriptionError = Tagged<"SubscriptionError"> & OfQuerySet & { error: string };
/** A call of a reducer is answered. */
export type ReducerResultMessage = Tagged<"ReducerResult"> & OfRequest & { result: ReducerOutcome };
/** A call of a procedure is answered. */
export type ProcedureResultMessage = Tagged<"ProcedureResult"> &
  OfRequest & { result: (Tagged<"Ok"> & { value: Uint8Array }) | (Tagged<"Err"> & { value: string }) };

/** Any of them. */
export type Message =
  | TransactionUpdateMessage
  | SubscribeAppliedMessage
  | UnsubscribeAppliedMessage
  | SubscriptionError
  | ReducerResultMessage
  | ProcedureResultMessage;
