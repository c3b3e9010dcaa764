import type { RowTypedQuery } from "./query";

/** A query for rows of any table (see `untyped.ts`). */
export type AnyRowQuery = RowTypedQuery<any, any>;
