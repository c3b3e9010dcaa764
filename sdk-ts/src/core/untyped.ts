// Where types end. The compiler checks modules and applications against their own tables; what serves all of them takes
// values of every type, and says so with the names in here.

import type { Deserializer, Serializer } from "./algebraic_type";
import type { ColumnBuilder, ColumnMetadata } from "./column_builders";
import type { RowTypedQuery } from "./query";
import type { BooleanExpr, ColumnExpression } from "./query_expression";
import type { RefBuilder, RowBuilder, TypeBuilder } from "./type_builders";

export type AnySerializer = Serializer<any>;
export type AnyDeserializer = Deserializer<any>;

/** A function of a module or an application; its type was checked where it was written. */
export type AnyFunction = (...args: any[]) => any;

/** A builder of any type. */
export type AnyTypeBuilder = TypeBuilder<any, any>;
/** A column of any type. */
export type AnyColumn = ColumnBuilder<any, any, any>;
/** A column of any type, of which it is known what a definition can say. */
export type TypedColumn = ColumnBuilder<any, any, ColumnMetadata<any>>;
/** Columns by name, whatever their types. */
export type AnyColumns = Record<string, AnyColumn>;
/** The columns of any table, or the parameters of any function. */
export type AnyRowBuilder = RowBuilder<any>;
/** A type in the typespace, whatever it is. */
export type AnyRef = RefBuilder<any, any>;

/** A column in a query. */
export type AnyColumnExpr = ColumnExpression<any, any>;
/** A condition on rows of any table. */
export type AnyCondition = BooleanExpr<any>;
/** A query for rows of any table. */
export type AnyRowQuery = RowTypedQuery<any, any>;

/** A row of any table: its fields have the types of the columns. */
export type AnyRow = Record<string, any>;

/** The value as what it is known to be: for what the compiler cannot find out, and for nothing that comes from outside. */
export function known<T>(value: unknown): T {
  return value as T;
}
