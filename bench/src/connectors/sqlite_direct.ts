// SQLite inside the process of the benchmark, for data-layer and data-layer-crm.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describeSqlite, openSqlite } from "../rpc-servers/sqlite";
import { sqliteStores, storeMethods } from "../rpc-servers/stores";
import { type ConnectorDefinition, fairnessOf } from "./definition";
import { DirectConnector } from "./direct_connector";

const name = "sqlite_direct";

const open = (file: string) =>
  openSqlite({ SQLITE_FILE: file, SQLITE_MODE: "default", SQLITE_DURABILITY: "full" });

export const definition: ConnectorDefinition = {
  key: name,
  startCommand: "(nothing to start)",
  async prepare({ workDirectory }) {
    const directory = mkdtempSync(join(workDirectory, "sqlite-direct-"));
    const url = join(directory, "data.sqlite");
    const probe = open(url);
    const { software, isolation, durability } = describeSqlite(probe);
    probe.close();
    return {
      url,
      fairness: fairnessOf({
        ...{ systemClass: "database-direct", isolation, durability, transport: "in process" },
        ...{ colocated: true, roundTripsPerTx: 0 },
      }),
      // The database is part of the client.
      serverProcesses: null,
      dataDirectory: directory,
      software,
      stop: async () => rmSync(directory, { recursive: true, force: true }),
    };
  },
  create: ({ initialBalance }, { url }) =>
    new DirectConnector({
      ...{ name, initialBalance, isShared: true },
      async connect() {
        const database = open(url);
        const { notes, crm } = sqliteStores(database);
        return { methods: storeMethods({ notes, crm }), close: () => database.close() };
      },
    }),
};
