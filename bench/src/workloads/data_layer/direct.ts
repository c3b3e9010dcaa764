// data-layer on databases without a server in between: PostgreSQL on a pool, SQLite inside this process.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import type { Account, Connector, ConnectorDefinition, VerifyTotals } from "../../connectors/connector";
import { PostgresDirectConnector } from "../../connectors/postgres_direct";
import type { PrepareContext, Prepared } from "../../init/prepare";
import { describeSqlite, openSqlite } from "../../rpc-servers/sqlite";
import type { WorkloadCase } from "../workload";
import { postgresNotes } from "./postgres";
import { sqliteNotes } from "./sqlite";
import type { NoteStore } from "./store";
import { noteOps } from "./workload";

const stores = new WeakMap<Connector, NoteStore>();

/** The store of a connection, made at its first use. */
function kept(connection: Connector, make: () => NoteStore): NoteStore {
  let store = stores.get(connection);
  if (!store) {
    store = make();
    stores.set(connection, store);
  }
  return store;
}

export const postgresDirectNotes: WorkloadCase = {
  system: "postgres_direct",
  label: "node-postgres",
  ops: noteOps((connection) => {
    if (!(connection instanceof PostgresDirectConnector)) throw new Error(`${connection.name} has no pool`);
    return kept(connection, () => postgresNotes(connection.pool));
  }),
};

/** All connections are the one database of this process. */
class SqliteDirectConnector implements Connector {
  readonly name = "sqlite_direct";
  #database: Database.Database | undefined;

  constructor(private readonly file: string) {}

  get database(): Database.Database {
    if (!this.#database) throw new Error(`${this.name}: not open`);
    return this.#database;
  }

  async open(): Promise<void> {
    this.#database = openSqlite({
      SQLITE_FILE: this.file,
      SQLITE_MODE: "default",
      SQLITE_DURABILITY: "full",
    });
  }

  async close(): Promise<void> {
    this.#database?.close();
    this.#database = undefined;
  }

  call(name: string): Promise<unknown> {
    return Promise.reject(new Error(`${this.name}: there are no functions, ${name} neither`));
  }

  getAccount(): Promise<Account | null> {
    return Promise.reject(new Error(`${this.name}: there are no accounts`));
  }

  verify(): Promise<VerifyTotals> {
    return Promise.reject(new Error(`${this.name}: there are no accounts`));
  }
}

async function prepareSqlite({ workDirectory }: PrepareContext): Promise<Prepared> {
  const directory = mkdtempSync(join(workDirectory, "sqlite-direct-"));
  const file = join(directory, "notes.sqlite");
  const probe = openSqlite({ SQLITE_FILE: file, SQLITE_MODE: "default", SQLITE_DURABILITY: "full" });
  const { isolation, durability, software } = describeSqlite(probe);
  probe.close();
  return {
    url: file,
    fairness: {
      systemClass: "database-direct",
      isolation,
      durability,
      poolMax: null,
      transport: "in process",
      orm: "none",
      clientLanguage: "TypeScript",
      colocated: true,
      roundTripsPerTx: 0,
    },
    // The database is part of the client.
    serverProcesses: null,
    dataDirectory: directory,
    software,
    reseed: async () => {},
    stop: async () => rmSync(directory, { recursive: true, force: true }),
  };
}

const sqliteDefinition: ConnectorDefinition = {
  key: "sqlite_direct",
  startCommand: "(nothing to start)",
  prepare: prepareSqlite,
  create: (_config, { url }) => new SqliteDirectConnector(url),
};

export const sqliteDirectNotes: WorkloadCase = {
  system: "sqlite_direct",
  label: "SQLite, in process",
  ops: noteOps((connection) => {
    if (!(connection instanceof SqliteDirectConnector))
      throw new Error(`${connection.name} is not in this process`);
    return kept(connection, () => sqliteNotes(connection.database));
  }),
  definition: sqliteDefinition,
};
