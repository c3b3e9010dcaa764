// SQLite inside the process of the benchmark, for data-layer and data-layer-crm.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { describeSqlite, openSqlite } from "../rpc-servers/sqlite";
import type { Connector } from "./connector";
import type { ConnectorDefinition, PrepareContext, Prepared } from "./definition";

/** All connections are the one database of this process. */
export class SqliteDirectConnector implements Connector {
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
}

async function prepareSqlite({ workDirectory }: PrepareContext): Promise<Prepared> {
  const directory = mkdtempSync(join(workDirectory, "sqlite-direct-"));
  const file = join(directory, "data.sqlite");
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
    stop: async () => rmSync(directory, { recursive: true, force: true }),
  };
}

export const definition: ConnectorDefinition = {
  key: "sqlite_direct",
  startCommand: "(nothing to start)",
  prepare: prepareSqlite,
  create: (_config, { url }) => new SqliteDirectConnector(url),
};

export function sqliteDatabaseOf(connection: Connector): Database.Database {
  if (!(connection instanceof SqliteDirectConnector))
    throw new Error(`${connection.name} is not in this process`);
  return connection.database;
}
