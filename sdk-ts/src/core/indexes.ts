// Indexes of tables: how options define them, and what modules and clients can do with each kind.

import type { ColumnsWithIndex, KeyColumns, MetadataOf, UniqueColumns } from "./columns";
import type { Range } from "./range";
import type { AnyTableDef, RowType } from "./table";

/** The kinds of an index. */
export type IndexAlgorithm = "btree" | "hash" | "direct";

/** An index over one or more columns, given in the options of `table()`. */
export type IndexOpts<Column extends string> = {
  /** The name of the index in the database. */
  name?: string;
  /** The name of the property of the table by which the module uses the index. */
  accessor: string;
} & (
  | { algorithm: Extract<IndexAlgorithm, "direct">; column: Column }
  | { algorithm: Exclude<IndexAlgorithm, "direct">; columns: readonly Column[] }
);

/** An index as the rest of the SDK knows it, whether a column has it or the options of the table. */
export interface IndexDef<Column extends string = string> {
  name: string;
  columns: readonly Column[];
  algorithm: IndexAlgorithm;
  /** Whether each key has one row at most. */
  unique?: boolean;
}

/** The columns of an index, in its order. */
export type ColumnsOfIndex<Options> = Options extends { column: infer Only extends string }
  ? readonly [Only]
  : Options extends { columns: infer Several extends readonly string[] }
    ? Readonly<Several>
    : never;

/** The indexes that columns have of their own, under the names of the columns. */
type IndexesOfColumns<Columns> = {
  [Name in ColumnsWithIndex<Columns>]: {
    name: Name;
    columns: readonly [Name];
    algorithm: MetadataOf<Columns[Name]> extends { indexType: infer Algorithm extends IndexAlgorithm }
      ? Algorithm
      : "btree";
    unique: Name extends UniqueColumns<Columns> ? true : false;
  };
};

/** The indexes from the options of a table, under their accessors. */
type IndexesOfOptions<TableDef extends AnyTableDef> = {
  [Options in TableDef["indexes"][number] as NonNullable<Options["accessor"]>]: {
    name: Options["accessor"];
    columns: ColumnsOfIndex<Options>;
    algorithm: Options["algorithm"];
    // Every column must be unique by itself.
    unique: [ColumnsOfIndex<Options>[number]] extends [UniqueColumns<TableDef["columns"]>] ? true : false;
  };
};

/** All indexes of a table by the name of their property. */
export type TableIndexes<TableDef extends AnyTableDef> = IndexesOfColumns<TableDef["columns"]> &
  IndexesOfOptions<TableDef>;

// Keys ----------------------------------------------------------------------------------------------------------------

/** The values of some columns, one after the other. */
type ValuesOf<TableDef extends AnyTableDef, Names extends readonly string[]> = {
  -readonly [At in keyof Names]: TableDef["columns"][Names[At]]["typeBuilder"]["type"];
};

/** A key: the value of the column, or a list of values if there are several. */
type KeyOf<Values extends readonly unknown[]> = Values extends [infer Only] ? Only : Values;

/** Part of the keys: the first values, of which the last may be a range. One value alone needs no list. */
type SomeKeys<Values extends readonly unknown[]> = Values extends [infer First, ...infer Others]
  ? First | Range<First> | LongerKeys<[First], Others>
  : never;

type LongerKeys<Before extends unknown[], Others extends unknown[]> = Others extends [
  infer Next,
  ...infer Rest,
]
  ? readonly [...Before, Next | Range<Next>] | LongerKeys<[...Before, Next], Rest>
  : never;

// What indexes can do -------------------------------------------------------------------------------------------------

interface FindsOne<Row, Key> {
  /** The row with this key, or null. */
  find(key: Key): Row | null;
}

interface FindsSome<Row, Keys> {
  /** The rows with this key; of an ordered index also those with keys in a range, or with these first values. */
  filter(keys: Keys): IteratorObject<Row, undefined>;
}

interface DeletesOne<Key> {
  /** Deletes the row with this key; says whether there was one. */
  delete(key: Key): boolean;
}

interface DeletesSome<Keys> {
  /** Deletes the rows that `filter` would give; says how many. */
  delete(keys: Keys): number;
}

interface Replaces<Row> {
  /** Replaces the row with the same key; throws `NoSuchRow` if there is none. */
  update(row: Row): Row;
}

/** The argument of a look-up: a part of the key columns, if they are ordered. */
type Wanted<Index extends IndexDef, Values extends readonly unknown[]> = Index["algorithm"] extends "hash"
  ? KeyOf<Values>
  : SomeKeys<Values>;

type Reads<Index extends IndexDef, Row, Values extends readonly unknown[]> = Index["unique"] extends true
  ? Index["algorithm"] extends "hash"
    ? FindsOne<Row, KeyOf<Values>>
    : FindsOne<Row, KeyOf<Values>> & FindsSome<Row, SomeKeys<Values>>
  : FindsSome<Row, Wanted<Index, Values>>;

type Writes<
  TableDef extends AnyTableDef,
  Index extends IndexDef,
  Row,
  Values extends readonly unknown[],
> = Index["unique"] extends true
  ? [Index["columns"][number]] extends [KeyColumns<TableDef["columns"]>]
    ? DeletesOne<KeyOf<Values>> & Replaces<Row>
    : DeletesOne<KeyOf<Values>>
  : DeletesSome<Wanted<Index, Values>>;

/** The indexes of a table, for a function that may only read. */
export type ReadonlyIndexes<
  TableDef extends AnyTableDef,
  Indexes extends Record<string, IndexDef> = TableIndexes<TableDef>,
> = {
  [Name in keyof Indexes]: Reads<
    Indexes[Name],
    RowType<TableDef>,
    ValuesOf<TableDef, Indexes[Name]["columns"]>
  >;
};

/** The indexes of a table, for a function that may change it. */
export type Indexes<
  TableDef extends AnyTableDef,
  All extends Record<string, IndexDef> = TableIndexes<TableDef>,
> = {
  [Name in keyof All]: Reads<All[Name], RowType<TableDef>, ValuesOf<TableDef, All[Name]["columns"]>> &
    Writes<TableDef, All[Name], RowType<TableDef>, ValuesOf<TableDef, All[Name]["columns"]>>;
};
