import type { ColumnMetadata } from "./column_builders";
import type { UntypedTableDef } from "./table";

/** Whether every one of some columns is unique. */
export type AllUnique<
  TableDef extends UntypedTableDef,
  Columns extends ReadonlyArray<keyof TableDef["columns"]>,
> = Columns extends readonly [
  infer Head extends keyof TableDef["columns"],
  ...infer Tail extends ReadonlyArray<keyof TableDef["columns"]>,
]
  ? ColumnIsUnique<TableDef["columns"][Head]["columnMetadata"]> extends true
    ? AllUnique<TableDef, Tail>
    : false
  : true;

export type ColumnIsUnique<M extends ColumnMetadata<any>> = M extends
  | { isUnique: true }
  | { isPrimaryKey: true }
  ? true
  : false;

/** A constraint given in the options of `table()`. */
export type ConstraintOpts<AllowedCol extends string> = {
  name?: string;
  constraint: "unique";
  columns: [AllowedCol];
};
