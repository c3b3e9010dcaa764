// Types of the tables in `connection.db`.

import type {
  ColumnBuilder,
  Prettify,
  ReadonlyIndexes,
  ReadonlyTableMethods,
  RowType,
  TableIndexes,
  TableNamesOf,
  UntypedSchemaDef,
  UntypedTableDef,
  Values,
} from "../core";
import type { EventContextInterface } from "./event_context";
import type { UntypedRemoteModule } from "./remote_module";

type TableName<SchemaDef> = [SchemaDef] extends [UntypedSchemaDef] ? TableNamesOf<SchemaDef> : string;

export type TableDefForTableName<SchemaDef extends UntypedSchemaDef, N extends TableName<SchemaDef>> = [
  SchemaDef,
] extends [UntypedSchemaDef]
  ? Values<SchemaDef["tables"]> & { accessorName: N }
  : UntypedTableDef & { accessorName: N };

/** The tables of a module by their accessor names. */
export type ClientDbView<RemoteModule extends UntypedRemoteModule> = {
  readonly [TblName in Values<RemoteModule["tables"]>["accessorName"]]: ClientTable<RemoteModule, TblName>;
};

type RowOf<RemoteModule extends UntypedRemoteModule, Name extends TableNamesOf<RemoteModule>> = Prettify<
  RowType<TableDefForTableName<RemoteModule, Name>>
>;

export type ClientTablePrimaryKeyMethods<
  RemoteModule extends UntypedRemoteModule,
  TableName extends TableNamesOf<RemoteModule>,
> = {
  /** Calls `cb` when a row is replaced by one with the same primary key. */
  onUpdate(
    cb: (
      ctx: EventContextInterface<RemoteModule>,
      oldRow: RowOf<RemoteModule, TableName>,
      newRow: RowOf<RemoteModule, TableName>,
    ) => void,
  ): void;
  removeOnUpdate(
    cb: (
      ctx: EventContextInterface<RemoteModule>,
      oldRow: RowOf<RemoteModule, TableName>,
      newRow: RowOf<RemoteModule, TableName>,
    ) => void,
  ): void;
};

export type ClientTableInsertMethods<
  RemoteModule extends UntypedRemoteModule,
  TableName extends TableNamesOf<RemoteModule>,
> = {
  /** Calls `cb` when a row comes into the cache. */
  onInsert(cb: (ctx: EventContextInterface<RemoteModule>, row: RowOf<RemoteModule, TableName>) => void): void;
  removeOnInsert(
    cb: (ctx: EventContextInterface<RemoteModule>, row: RowOf<RemoteModule, TableName>) => void,
  ): void;
};

export type ClientTableDeleteMethods<
  RemoteModule extends UntypedRemoteModule,
  TableName extends TableNamesOf<RemoteModule>,
> = {
  /** Calls `cb` when a row leaves the cache. */
  onDelete(cb: (ctx: EventContextInterface<RemoteModule>, row: RowOf<RemoteModule, TableName>) => void): void;
  removeOnDelete(
    cb: (ctx: EventContextInterface<RemoteModule>, row: RowOf<RemoteModule, TableName>) => void,
  ): void;
};

export type ClientTableMethods<
  RemoteModule extends UntypedRemoteModule,
  TableName extends TableNamesOf<RemoteModule>,
> = ClientTableInsertMethods<RemoteModule, TableName> & ClientTableDeleteMethods<RemoteModule, TableName>;

type IsEventTable<TableDef extends UntypedTableDef> = TableDef extends { isEvent: true } ? true : false;

type HasPrimaryKey<TableDef extends UntypedTableDef> = ColumnsHavePrimaryKey<TableDef["columns"]>;

type ColumnsHavePrimaryKey<Cs extends Record<string, ColumnBuilder<any, any, any>>> = {
  [K in keyof Cs]: Cs[K] extends ColumnBuilder<any, any, infer M>
    ? M extends { isPrimaryKey: true }
      ? true
      : never
    : never;
}[keyof Cs] extends true
  ? true
  : false;

/** The methods of a table without its indexes. An event table has `onInsert` only. */
export type ClientTableCore<
  RemoteModule extends UntypedRemoteModule,
  TableName extends TableNamesOf<RemoteModule>,
> = ReadonlyTableMethods<TableDefForTableName<RemoteModule, TableName>> &
  ClientTableInsertMethods<RemoteModule, TableName> &
  (IsEventTable<TableDefForTableName<RemoteModule, TableName>> extends true
    ? {}
    : ClientTableDeleteMethods<RemoteModule, TableName> &
        (HasPrimaryKey<TableDefForTableName<RemoteModule, TableName>> extends true
          ? ClientTablePrimaryKeyMethods<RemoteModule, TableName>
          : {}));

/** A table of the cache: its rows, its callbacks, and its indexes. */
export type ClientTable<
  RemoteModule extends UntypedRemoteModule,
  TableName extends TableNamesOf<RemoteModule>,
> = Prettify<
  ClientTableCore<RemoteModule, TableName> &
    ReadonlyIndexes<
      TableDefForTableName<RemoteModule, TableName>,
      TableIndexes<TableDefForTableName<RemoteModule, TableName>>
    >
>;
