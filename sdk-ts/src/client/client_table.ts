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
import type { EventContextInterface } from "./event_context";
import type { AnyModule } from "./remote_module";

/** The accessor names of a schema, or any name where the schema is not known. */
export type TableName<SchemaDef> = [SchemaDef] extends [AnySchema] ? AccessorsOf<SchemaDef> : string;

export type TableDefForTableName<SchemaDef extends AnySchema, N extends TableName<SchemaDef>> = {
  accessorName: N;
} & ([SchemaDef] extends [AnySchema] ? TableOf<SchemaDef> : AnyTableDef);

/** What is called for a row, or for an old and a new one. */
type RowCallback<Module extends AnyModule, Rows extends unknown[]> = (
  ctx: EventContextInterface<Module>,
  ...rows: Rows
) => void;

interface TellsInserts<Module extends AnyModule, Row> {
  /** Calls `callback` when a row comes into the cache. */
  onInsert(callback: RowCallback<Module, [row: Row]>): void;
  removeOnInsert(callback: RowCallback<Module, [row: Row]>): void;
}

interface TellsDeletes<Module extends AnyModule, Row> {
  /** Calls `callback` when a row leaves the cache. */
  onDelete(callback: RowCallback<Module, [row: Row]>): void;
  removeOnDelete(callback: RowCallback<Module, [row: Row]>): void;
}

interface TellsUpdates<Module extends AnyModule, Row> {
  /** Calls `callback` when a row is replaced by one with the same primary key; never for a table without one. */
  onUpdate(callback: RowCallback<Module, [oldRow: Row, newRow: Row]>): void;
  removeOnUpdate(callback: RowCallback<Module, [oldRow: Row, newRow: Row]>): void;
}

/** The callbacks of a table besides `onInsert`: rows of an event table only come. */
type MoreCallbacks<Module extends AnyModule, TableDef extends AnyTableDef> = TableDef["isEvent"] extends true
  ? unknown
  : TellsDeletes<Module, RowType<TableDef>> & TellsUpdates<Module, RowType<TableDef>>;

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
