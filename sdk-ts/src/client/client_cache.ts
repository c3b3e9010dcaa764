// The tables of a connection by name.

import type { AccessorsOf } from "../core";
import { known } from "../core/untyped";
import { noSuchTable } from "./client_error";
import type { ClientTable, TableDefForTableName, TableName } from "./client_table";
import type { AnyModule } from "./remote_module";
import { type CachedTableDef, TableCacheImpl } from "./table_cache";

/** A table of the cache: its rows, its callbacks, and its indexes. */
export type TableCache<RemoteModule extends AnyModule, Name extends AccessorsOf<RemoteModule>> = ClientTable<
  RemoteModule,
  Name
>;

/** The tables of a connection by their accessor names. */
export class ClientCache<RemoteModule extends AnyModule> {
  readonly tables = new Map<string, TableCacheImpl>();

  getTable<N extends TableName<RemoteModule>>(name: N): TableCache<RemoteModule, N> {
    const table = this.tables.get(name);
    if (!table) throw noSuchTable(name);
    return table.facade as TableCache<RemoteModule, N>;
  }

  getOrCreateTable<N extends TableName<RemoteModule>>(
    tableDef: TableDefForTableName<RemoteModule, N>,
  ): TableCache<RemoteModule, N> {
    let table = this.tables.get(tableDef.accessorName);
    if (!table) {
      table = new TableCacheImpl(known<CachedTableDef>(tableDef));
      this.tables.set(tableDef.accessorName, table);
    }
    return table.facade as TableCache<RemoteModule, N>;
  }
}
