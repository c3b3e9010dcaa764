// The WebSocket of a database, by the project's own package: rows that are on the screen stay as they are in the database.

import { DbConnectionBuilder, DbConnectionImpl } from "../../sdk-ts/src/client";
import type { AnyConnection } from "../../sdk-ts/src/client/db_connection_impl";
import { setCodeGeneration } from "../../sdk-ts/src/core/codec";
import { SERVER } from "./api";
import type { Schema, Table } from "./schema";
import { Store } from "./store";

// The policy of this page forbids code from text. Without this the package would find that out by trying.
setCodeGeneration(false);

/** Rows of one subscription; more are not asked for. */
export const LIVE_ROWS_MAX = 200;
/** What a window may leave out and hold together, by the server's default. */
export const WINDOW_ROWS_MAX = 10_000;

type Row = Record<string, unknown>;

interface CachedTable {
  iter(): Iterable<Row>;
  onInsert(listener: () => void): () => void;
  onDelete(listener: () => void): () => void;
  onUpdate(listener: () => void): () => void;
}

export type State = "connecting" | "live" | "lost";

/** Names of tables and columns are those of a stranger: here they are numbers. */
function moduleOf(schema: Schema): unknown {
  const tables = schema.tables.map((table, at) => [`t${at}`, definitionOf(table, `t${at}`)]);
  return {
    versionInfo: { cliVersion: "2.10.1" },
    tables: Object.fromEntries(tables),
    reducers: [],
    procedures: [],
  };
}

function definitionOf(table: Table, accessorName: string): unknown {
  const elements = table.columns.map(({ type }, at) => ({ name: `c${at}`, algebraicType: type }));
  const columns = table.columns.map((column, at) => [
    `c${at}`,
    { columnMetadata: column.isPrimaryKey ? { isPrimaryKey: true } : {} },
  ]);
  return {
    accessorName,
    sourceName: table.name,
    rowType: { elements },
    columns: Object.fromEntries(columns),
    isEvent: table.isEvent,
    constraints: [],
    indexes: [],
    resolvedIndexes: [],
  };
}

export class Live {
  readonly state = new Store<State>("connecting");
  readonly #connection: AnyConnection;
  readonly #schema: Schema;

  constructor(database: string, token: string, schema: Schema) {
    this.#schema = schema;
    this.#connection = new DbConnectionBuilder<AnyConnection>(
      moduleOf(schema) as never,
      (config) => new DbConnectionImpl(config),
    )
      .withUri(SERVER)
      .withDatabaseName(database)
      .withToken(token)
      .withReconnect()
      .onConnectError(() => this.state.set("lost"))
      .onDisconnect(() => this.state.set("lost"))
      .build();
    this.#connection.onStateChange(() => this.state.set(this.#connection.isActive ? "live" : "connecting"));
  }

  /** Follows a query of one table. `changed` gets the values of its rows, in no order. */
  follow(
    table: Table,
    query: string,
    changed: (rows: unknown[][]) => void,
    failed: (message: string) => void,
  ): () => void {
    const cached = this.#cache(table);
    let isOver = false;
    let isWaiting = false;
    const tell = () => {
      isWaiting = false;
      if (!isOver) changed(this.#rows(cached, table));
    };
    // Many rows of one message are one change.
    const later = () => {
      if (isWaiting || !isApplied) return;
      isWaiting = true;
      setTimeout(tell, 50);
    };
    let isApplied = false;
    const stops = [cached.onInsert(later), cached.onDelete(later), cached.onUpdate(later)];
    const handle = this.#connection
      .subscriptionBuilder()
      .onApplied(() => {
        isApplied = true;
        tell();
      })
      .onError((_context, error) => failed(error.message))
      .subscribe(query);
    return () => {
      isOver = true;
      for (const stop of stops) stop();
      if (!handle.isEnded()) handle.unsubscribe();
    };
  }

  /** Rows of an event table come and are gone. */
  followEvents(table: Table, came: (row: unknown[]) => void, failed: (message: string) => void): () => void {
    const cached = this.#cache(table) as unknown as {
      onInsert(listener: (context: unknown, row: Row) => void): () => void;
    };
    const stop = cached.onInsert((_, row) => came(table.columns.map((_column, at) => row[`c${at}`])));
    const handle = this.#connection
      .subscriptionBuilder()
      .onError((_context, error) => failed(error.message))
      .subscribe(`SELECT * FROM "${table.name.replaceAll('"', '""')}"`);
    return () => {
      stop();
      if (!handle.isEnded()) handle.unsubscribe();
    };
  }

  #cache(table: Table): CachedTable {
    const tables = this.#connection.db as unknown as Record<string, CachedTable>;
    return tables[`t${this.#schema.tables.indexOf(table)}`]!;
  }

  #rows(cached: CachedTable, table: Table): unknown[][] {
    const rows: unknown[][] = [];
    for (const row of cached.iter()) rows.push(table.columns.map((_, at) => row[`c${at}`]));
    return rows;
  }

  close(): void {
    this.#connection.disconnect();
  }
}
