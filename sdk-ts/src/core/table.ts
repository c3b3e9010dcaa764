// Tables: their options, their types, and their definitions for the host.

import type { ColumnsWithUselessDefault, HasUselessDefault } from "./columns";
import { LightconeError } from "./errors";
import type { IndexDef, Indexes, IndexOpts, ReadonlyIndexes } from "./indexes";
import type { RawScheduleDefV10, RawTableDefV10 } from "./module_def";
import { ScheduleAt } from "./schedule_at";
import type { DefinitionBuilder } from "./schema";
import type { TableParts } from "./table_definition";
import { RowBuilder } from "./type_builders";
import type { ColumnsOf, InferTypeOfRow, RowObj } from "./type_inference";
import type { Prettify } from "./type_util";
import type { AnyColumns, AnyRowBuilder, TypedColumn } from "./untyped_builders";

/** The algebraic type of the rows with these columns. */
export type RowProduct<Columns extends RowObj> = RowBuilder<Columns>["algebraicType"]["value"];

/** The compiler shows this where a column has a default value and is a key or counted. */
interface UselessDefault<Columns extends string> {
  columns: Columns;
  reason: "default() gives all existing rows the same value: take it away from a key, unique or counted column";
}

/**
 * One more argument of `table()`, which cannot be given, if columns exclude what they say themselves. Asked in this way, the
 * compiler answers no where it does not know the columns, as in a function that adds some of its own to those of its caller.
 */
type ColumnErrors<Row extends RowObj> = HasUselessDefault<Row> extends true
  ? [error: UselessDefault<ColumnsWithUselessDefault<Row>>]
  : [];

type AnyIndexOpts = IndexOpts<any>;

/** A table of a schema, whatever its columns. */
export interface AnyTableDef {
  /** Its name in the schema, and the name of the property by which it is used. */
  accessorName: string;
  /** Its name in the database. */
  sourceName: string;
  rowType: RowProduct<RowObj>;
  columns: Record<string, TypedColumn>;
  isEvent?: boolean;
  /** It is a view with parameters. */
  takesArguments?: boolean;
  constraints: readonly ConstraintOpts<any>[];
  /** The indexes as the options of the table give them. */
  indexes: readonly AnyIndexOpts[];
  /** All indexes, those of columns included. */
  resolvedIndexes: readonly IndexDef<any>[];
  tableDef: RawTableDefV10;
}

/** The rows of a table. */
export type RowType<TableDef extends { columns: RowObj }> = InferTypeOfRow<TableDef["columns"]>;

/** A constraint given in the options of `table()`. */
export interface ConstraintOpts<Column extends string> {
  constraint: "unique";
  columns: [Column];
  name?: string;
}

/** A reducer or procedure that runs when a row of a table is due. */
export type ScheduledFunction = (ctx: any, args: any) => any;

/** A reducer of another database, as rows of outbox tables call it: the result of `remoteReducer()`. */
export interface RemoteReducer {
  /** In the database, with its namespace. */
  readonly name: string;
  /** By their names in the database. */
  readonly params: RowObj;
  /** By which a receiver knows that a sender means its parameters. */
  readonly signatureHash: Uint8Array;
}

/** What makes a table an outbox table: each row is a message to a reducer of the database that its target column names. */
export interface OutboxOpts<Column extends string> {
  /** What `remoteReducer()` gives. */
  reducer: RemoteReducer;
  /** The column with the identity of the database. */
  target: Column;
  /** The columns of parameters that are not called like them. A column may also have a parameter's name in camel case. */
  params?: { readonly [param: string]: Column };
}

/** Options of a table. */
export interface TableOpts<Columns extends RowObj> {
  /** Whether clients may read the table; they may not, unless told otherwise. */
  public?: boolean;
  /** Rows of an event table are sent to subscribers, and not stored. */
  event?: boolean;
  /**
   * Rows are messages to another database (docs/design/outbox-tables.md). Such a table has a primary key of type u64.
   *
   * The package `spacetimedb` had no outbox tables when this was written: `outbox` and its members are a guess.
   */
  outbox?: OutboxOpts<keyof Columns & string>;
  /** The name of the table in the database, if it is not its key in the schema. */
  name?: string;
  /** Of a view in generated bindings: it has parameters, so queries on it are made by `viewCall`. */
  takesArguments?: boolean;
  constraints?: ConstraintOpts<keyof Columns & string>[];
  indexes?: IndexOpts<keyof Columns & string>[];
  /** @deprecated Use the option `onSchedule` of a reducer or procedure. */
  scheduled?: () => ScheduledFunction;
}

/** The indexes in the options of a table. */
type IndexesIn<Options> = Options extends { indexes: infer List extends readonly any[] } ? List : [];

// Tables in the hands of functions ------------------------------------------------------------------------------------

interface ReadsRows<Row> {
  /** The number of rows, in constant time. */
  count(): bigint;
  /** All rows, as the transaction sees them. */
  iter(): IteratorObject<Row, undefined>;
  [Symbol.iterator](): IteratorObject<Row, undefined>;
}

interface WritesRows<Row> {
  /**
   * Inserts a row, and returns it with its counted columns filled in.
   *
   * Throws `UniqueAlreadyExists` if a unique column has the value already, and `AutoIncOverflow` if a count ends.
   */
  insert(row: Row): Row;
  /** Deletes the row that is equal to `row`; says whether there was one. */
  delete(row: Row): boolean;
  /** Deletes all rows; says how many. */
  clear(): bigint;
}

/** The reads of a table that need no index. */
export type TableReads<TableDef extends AnyTableDef> = ReadsRows<RowType<TableDef>>;

/** A table in the hands of a view. */
export type ReadonlyTable<TableDef extends AnyTableDef> = Prettify<
  ReadonlyIndexes<TableDef> & TableReads<TableDef>
>;

/** A table in the hands of a reducer. */
export type Table<TableDef extends AnyTableDef> = Prettify<
  Indexes<TableDef> & WritesRows<RowType<TableDef>> & TableReads<TableDef>
>;

// Tables in the hands of schemas --------------------------------------------------------------------------------------

/** The function of a scheduled table. */
export interface TableSchedule {
  reducer: () => ScheduledFunction;
  scheduleAtCol: number;
}

/** The result of `table()`, for `schema()`. */
export interface TableSchema<Columns extends AnyColumns, Listed extends readonly AnyIndexOpts[]> {
  /** The type of the rows, also to be used as a parameter. */
  readonly rowType: RowBuilder<Columns>;
  readonly rowSpacetimeType: RowProduct<Columns>;
  readonly tableName?: string;
  /** Whether rows are sent to subscribers, and not stored. */
  readonly isEvent?: boolean;
  /** Whether it is a view with parameters. */
  readonly takesArguments?: boolean;
  /** The indexes from the options. */
  readonly idxs: Listed;
  readonly constraints: readonly { constraint: "unique"; columns: [any]; name: string | undefined }[];
  /** The position of the column of type `ScheduleAt`, if there is one. */
  readonly scheduleAtCol?: number;
  /** @deprecated Comes from the option `scheduled`. */
  readonly schedule?: TableSchedule;
  /** Registers the types of the table, and gives its definition. */
  tableDef(definition: DefinitionBuilder, accName: string): RawTableDefV10 & { schedule?: RawScheduleDefV10 };
}

/** The result of `table()` for any columns. */
export type AnyTableSchema = TableSchema<AnyColumns, readonly IndexOpts<string>[]>;

/** The part of a `table()` result that queries need. */
export interface TableSchemaAsTableDef<TSchema extends AnyTableSchema> {
  name: TSchema["tableName"];
  columns: TSchema["rowType"]["row"];
  indexes: TSchema["idxs"];
}

/** The tables whose rows can be the one argument of a scheduled function with these parameters. */
export type TableOfArgument<Params extends RowObj> = Params[keyof Params] extends RowBuilder<
  infer Columns extends AnyColumns
>
  ? TableSchema<Columns, readonly IndexOpts<keyof Columns & string>[]>
  : never;

/**
 * Defines a table: its options, and its columns.
 *
 * If the compiler expects a third argument here, a column has `default()` and also `primaryKey()`, `unique()` or
 * `autoInc()`, which exclude each other.
 */
export function table<Row extends RowObj, const Opts extends TableOpts<Row>>(
  opts: Opts,
  row: Row | RowBuilder<Row>,
  ..._: ColumnErrors<Row>
): TableSchema<ColumnsOf<Row>, IndexesIn<Opts>> {
  const rowType: AnyRowBuilder = row instanceof RowBuilder ? row : new RowBuilder(row);
  const columns = Object.entries(rowType.row as Record<string, TypedColumn>);
  const scheduled = columns.findIndex(([, { typeBuilder }]) =>
    ScheduleAt.isScheduleAt(typeBuilder.algebraicType),
  );
  if (opts.scheduled !== undefined && scheduled < 0) {
    throw new LightconeError("LC0805", "A scheduled table needs a column of type t.scheduleAt()");
  }
  const constraints: AnyTableSchema["constraints"] = (opts.constraints ?? []).map(
    ({ name, constraint, columns: names }) => ({ name, constraint, columns: names }),
  );
  const parts: TableParts = { opts, rowType, columns, constraints };
  const made: TableSchema<any, readonly AnyIndexOpts[]> = {
    rowType,
    rowSpacetimeType: rowType.algebraicType.value,
    tableName: opts.name,
    isEvent: opts.event,
    takesArguments: opts.takesArguments,
    idxs: opts.indexes ?? [],
    constraints,
    scheduleAtCol: scheduled < 0 ? undefined : scheduled,
    schedule: opts.scheduled && { scheduleAtCol: scheduled, reducer: opts.scheduled },
    tableDef: (definition, accName) => definition.tableDefinition(parts, accName),
  };
  return made as TableSchema<ColumnsOf<Row>, IndexesIn<Opts>>;
}
