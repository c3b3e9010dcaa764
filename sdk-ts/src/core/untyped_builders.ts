// Builders and columns of any type, for what serves all of them (see `untyped.ts`).

import type { ColumnBuilder, ColumnMetadata } from "./column_builders";
import type { RefBuilder, RowBuilder, TypeBuilder } from "./type_builders";

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
