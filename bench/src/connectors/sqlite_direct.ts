// SQLite inside the process of the benchmark, for data-layer and data-layer-crm.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describeSqlite, openSqlite } from "../rpc-servers/sqlite";
import { sqliteStores, storeMethods } from "../rpc-servers/stores";
import { directDefinition } from "./direct_connector";

export const definition = directDefinition({
  key: "sqlite_direct",
  startCommand: "(nothing to start)",
  isShared: true,
  columns: { transport: "in process", colocated: true },
  async start({ workDirectory }) {
    const dataDirectory = mkdtempSync(join(workDirectory, "sqlite-direct-"));
    return {
      ...{ url: join(dataDirectory, "data.sqlite"), dataDirectory },
      // The database is part of the client.
      processes: () => null,
      stop: async () => rmSync(dataDirectory, { recursive: true, force: true }),
    };
  },
  async connect(url) {
    const database = openSqlite({ SQLITE_FILE: url, SQLITE_MODE: "default", SQLITE_DURABILITY: "full" });
    const { notes, crm } = sqliteStores(database);
    const describe = () => ({ ...describeSqlite(database), roundTripsPerTx: 0 });
    return { methods: { ...storeMethods({ notes, crm }), describe }, close: () => database.close() };
  },
});
