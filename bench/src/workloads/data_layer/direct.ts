// data-layer on databases without a server in between: PostgreSQL on a pool, SQLite inside this process.

import { poolOf } from "../../connectors/postgres_direct";
import { sqliteDatabaseOf, definition as sqliteDirect } from "../../connectors/sqlite_direct";
import { perConnection } from "../per_connection";
import type { WorkloadCase } from "../workload";
import { postgresNotes } from "./postgres";
import { sqliteNotes } from "./sqlite";
import { noteOps } from "./workload";

export const postgresDirectNotes: WorkloadCase = {
  system: "postgres_direct",
  label: "node-postgres",
  ops: noteOps(perConnection((connection) => postgresNotes(poolOf(connection)))),
};

export const sqliteDirectNotes: WorkloadCase = {
  system: "sqlite_direct",
  label: "SQLite, in process",
  ops: noteOps(perConnection((connection) => sqliteNotes(sqliteDatabaseOf(connection)))),
  definition: sqliteDirect,
};
