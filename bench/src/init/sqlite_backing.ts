// A fresh file for a SQLite server.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { PrepareContext } from "../connectors/definition";
import type { Backing } from "./rpc_server";

export async function sqliteBacking({ config, workDirectory }: PrepareContext): Promise<Backing> {
  const directory = mkdtempSync(join(workDirectory, "sqlite-"));
  return {
    environment: {
      SQLITE_FILE: join(directory, "accounts.sqlite"),
      SQLITE_DURABILITY: config.sqliteDurability,
      SQLITE_MODE: process.env["SQLITE_MODE"] ?? "default",
    },
    processes: [],
    dataDirectory: directory,
    stop: async () => rmSync(directory, { recursive: true, force: true }),
  };
}
