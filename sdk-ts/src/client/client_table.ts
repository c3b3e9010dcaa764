// Types of the tables in `connection.db`.

import type {
  AccessorsOf,
  AnySchema,
  AnyTableDef,
  Prettify,
  ReadonlyIndexes,
  RowType,
  TableOf,
  TableReads,
} from "../core";
import type { KeyColumns } from "../core/columns";
import type { EventContextInterface } from "./event_context";
import type { AnyModule } from "./remote_module";

/** The accessor names of a schema, or any name where the schema is not known. */
export type TableName<SchemaDef> = [SchemaDef] extends [AnySchema] ? AccessorsOf<SchemaDef> : string;

/** The definition of a table with this accessor name. */
export type TableDefForTableName<SchemaDef extends AnySchema, N extends TableName<SchemaDef>> = {
  accessorName: N;
} & ([SchemaDef] extends [AnySchema] ? TableOf<SchemaDef> : AnyTableDef);

/** A callback for a row, or for an old and a new one. */
type RowCallback<Module extends AnyModule, Rows extends unknown[]> = (
  ctx: EventContextInterface<Module>,
  ...rows: Rows
) => void;

interface TellsInserts<Module extends AnyModule, Row> {
  /** Calls `callback` when a row comes into the cache; returns how to stop that. */
  onInsert(callback: RowCallback<Module, [row: Row]>): () => void;
  /** Stops calls of a function that was given to `onInsert`. */
  removeOnInsert(callback: RowCallback<Module, [row: Row]>): void;
}

interface TellsDeletes<Module extends AnyModule, Row> {
  /** Calls `callback` when a row leaves the cache; returns how to stop that. */
  onDelete(callback: RowCallback<Module, [row: Row]>): () => void;
  /** Stops calls of a function that was given to `onDelete`. */
  removeOnDelete(callback: RowCallback<Module, [row: Row]>): void;
}

interface TellsUpdates<Module extends AnyModule, Row> {
  /** Calls `callback` when a row is replaced by one with the same primary key; returns how to stop that. */
  onUpdate(callback: RowCallback<Module, [oldRow: Row, newRow: Row]>): () => void;
  /** Stops calls of a function that was given to `onUpdate`. */
  removeOnUpdate(callback: RowCallback<Module, [oldRow: Row, newRow: Row]>): void;
}

/** Rows without a primary key only come and go. Of tables that are not known, nothing is ruled out. */
type UpdateCallbacks<Module extends AnyModule, TableDef extends AnyTableDef> = [
  KeyColumns<TableDef["columns"]>,
] extends [never]
  ? string extends keyof TableDef["columns"]
    ? TellsUpdates<Module, RowType<TableDef>>
    : unknown
  : TellsUpdates<Module, RowType<TableDef>>;

/** The callbacks of a table besides `onInsert`: rows of an event table only come. */
type MoreCallbacks<Module extends AnyModule, TableDef extends AnyTableDef> = TableDef["isEvent"] extends true
  ? unknown
  : TellsDeletes<Module, RowType<TableDef>> & UpdateCallbacks<Module, TableDef>;

type ClientTableOf<Module extends AnyModule, TableDef extends AnyTableDef> = Prettify<
  ReadonlyIndexes<TableDef> &
    TableReads<TableDef> &
    TellsInserts<Module, RowType<TableDef>> &
    MoreCallbacks<Module, TableDef>
>;

/** A table of the cache: its rows, its callbacks, and its indexes. */
export type ClientTable<
  RemoteModule extends AnyModule,
  Name extends AccessorsOf<RemoteModule>,
> = ClientTableOf<RemoteModule, TableDefForTableName<RemoteModule, Name>>;

/** The tables of a module by their accessor names. */
export type ClientDbView<RemoteModule extends AnyModule> = {
  readonly [Name in AccessorsOf<RemoteModule>]: ClientTable<RemoteModule, Name>;
};
