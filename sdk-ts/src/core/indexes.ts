import type { ColumnMetadata, IndexTypes } from "./column_builders";
import type { ColumnIsUnique } from "./constraints";
import type { Range } from "./range";
import type { RowType, UntypedTableDef } from "./table";
import type { CollapseTuple, Prettify } from "./type_util";

/** An index over one or more columns, given in the options of `table()`. */
export type IndexOpts<AllowedCol extends string> = {
  /** The name of the property of the table by which the module uses the index. */
  accessor: string;
  /** The name of the index in the database. */
  name?: string;
} & (
  | { algorithm: "btree"; columns: readonly AllowedCol[] }
  | { algorithm: "hash"; columns: readonly AllowedCol[] }
  | { algorithm: "direct"; column: AllowedCol }
);

export type UntypedIndex<AllowedCol extends string> = {
  name: string;
  unique?: boolean;
  algorithm: "btree" | "direct" | "hash";
  columns: readonly AllowedCol[];
};

export type IndexColumns<I extends IndexOpts<any>> = I extends { columns: readonly string[] }
  ? readonly [...I["columns"]]
  : I extends { column: infer Name extends string }
    ? readonly [Name]
    : never;

export type Indexes<
  TableDef extends UntypedTableDef,
  I extends Record<string, UntypedIndex<keyof TableDef["columns"] & string>>,
> = { [k in keyof I]: Index<TableDef, I[k]> };

type AllColumnsPrimaryKey<
  TableDef extends UntypedTableDef,
  Columns extends readonly string[],
> = Columns extends readonly [
  infer Head extends keyof TableDef["columns"] & string,
  ...infer Tail extends readonly string[],
]
  ? TableDef["columns"][Head]["columnMetadata"] extends { isPrimaryKey: true }
    ? AllColumnsPrimaryKey<TableDef, Tail>
    : false
  : true;

/** What a unique index can do besides, if it is ordered. */
type Ranges<
  TableDef extends UntypedTableDef,
  I extends UntypedIndex<keyof TableDef["columns"] & string>,
> = I["algorithm"] extends "hash" ? unknown : ReadonlyRangedIndex<TableDef, I>;

/** What a module can do with an index: depends on whether it is unique, and on its algorithm. */
export type Index<
  TableDef extends UntypedTableDef,
  I extends UntypedIndex<keyof TableDef["columns"] & string>,
> = I["unique"] extends true
  ? AllColumnsPrimaryKey<TableDef, I["columns"]> extends true
    ? UniqueIndex<TableDef, I> &
        Ranges<TableDef, I> & {
          /** Replaces the row with the same key; throws `NoSuchRow` if there is none. */
          update(row: Prettify<RowType<TableDef>>): Prettify<RowType<TableDef>>;
        }
    : UniqueIndex<TableDef, I> & Ranges<TableDef, I>
  : I["algorithm"] extends "hash"
    ? PointIndex<TableDef, I>
    : RangedIndex<TableDef, I>;

export type ReadonlyIndexes<
  TableDef extends UntypedTableDef,
  I extends Record<string, UntypedIndex<keyof TableDef["columns"] & string>>,
> = { [k in keyof I]: ReadonlyIndex<TableDef, I[k]> };

export type ReadonlyIndex<
  TableDef extends UntypedTableDef,
  I extends UntypedIndex<keyof TableDef["columns"] & string>,
> = I["unique"] extends true
  ? ReadonlyUniqueIndex<TableDef, I> & Ranges<TableDef, I>
  : I["algorithm"] extends "hash"
    ? ReadonlyPointIndex<TableDef, I>
    : ReadonlyRangedIndex<TableDef, I>;

export interface ReadonlyUniqueIndex<
  TableDef extends UntypedTableDef,
  I extends UntypedIndex<keyof TableDef["columns"] & string>,
> {
  /** The row with this value, or null. */
  find(colVal: IndexVal<TableDef, I>): RowType<TableDef> | null;
}

export interface UniqueIndex<
  TableDef extends UntypedTableDef,
  I extends UntypedIndex<keyof TableDef["columns"] & string>,
> extends ReadonlyUniqueIndex<TableDef, I> {
  /** Deletes the row with this value; says whether there was one. */
  delete(colVal: IndexVal<TableDef, I>): boolean;
}

export interface ReadonlyPointIndex<
  TableDef extends UntypedTableDef,
  I extends UntypedIndex<keyof TableDef["columns"] & string>,
> {
  /** The rows with this value. */
  filter(point: IndexVal<TableDef, I>): IteratorObject<Prettify<RowType<TableDef>>, undefined>;
}

export interface PointIndex<
  TableDef extends UntypedTableDef,
  I extends UntypedIndex<keyof TableDef["columns"] & string>,
> extends ReadonlyPointIndex<TableDef, I> {
  /** Deletes the rows with this value; says how many. */
  delete(point: IndexVal<TableDef, I>): number;
}

export interface ReadonlyRangedIndex<
  TableDef extends UntypedTableDef,
  I extends UntypedIndex<keyof TableDef["columns"] & string>,
> {
  /** The rows with this value, with values in this range, or with this prefix of values. */
  filter(range: IndexScanRangeBounds<TableDef, I>): IteratorObject<Prettify<RowType<TableDef>>, undefined>;
}

export interface RangedIndex<
  TableDef extends UntypedTableDef,
  I extends UntypedIndex<keyof TableDef["columns"] & string>,
> extends ReadonlyRangedIndex<TableDef, I> {
  /** Deletes the rows that `filter` would give; says how many. */
  delete(range: IndexScanRangeBounds<TableDef, I>): number;
}

/** The value of an index over one column, or the values of one over several. */
export type IndexVal<
  TableDef extends UntypedTableDef,
  I extends UntypedIndex<keyof TableDef["columns"] & string>,
> = CollapseTuple<ColumnValues<TableDef, I["columns"]>>;

type ColumnValues<
  TableDef extends UntypedTableDef,
  Columns extends readonly string[],
> = Columns extends readonly [infer Head extends string, ...infer Tail extends readonly string[]]
  ? [TableDef["columns"][Head]["typeBuilder"]["type"], ...ColumnValues<TableDef, Tail>]
  : [];

/** What can be looked for in an index: a value, a range, or the first values and a range. */
export type IndexScanRangeBounds<
  TableDef extends UntypedTableDef,
  I extends UntypedIndex<keyof TableDef["columns"] & string>,
> = RangeBounds<ColumnValues<TableDef, I["columns"]>>;

type RangeBounds<Columns extends readonly any[]> = Columns extends [infer Term]
  ? Term | Range<Term>
  : PrefixBounds<Columns>;

type PrefixBounds<Columns extends readonly any[]> = Columns extends [...infer Prefix, infer Term]
  ? readonly [...Prefix, Term | Range<Term>] | RangeBounds<Prefix>
  : never;

/** The index that a column says it has; never, if it says nothing. */
export type ColumnIndex<Name extends string, M extends ColumnMetadata<any>> = Prettify<
  {
    name: Name;
    unique: ColumnIsUnique<M>;
    columns: readonly [Name];
    algorithm: "btree" | "direct" | "hash";
  } & (M extends { indexType: infer I extends NonNullable<IndexTypes> }
    ? { algorithm: I }
    : ColumnIsUnique<M> extends true
      ? { algorithm: "btree" }
      : never)
>;
