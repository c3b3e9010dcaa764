// The operations of data-layer on every kind of store.

import { poolOf } from "../../connectors/postgres_direct";
import { sqliteDatabaseOf } from "../../connectors/sqlite_direct";
import { postgresDrizzleNotes } from "../../rpc-servers/notes/postgres_store";
import { perConnection } from "../per_connection";
import { benchLoop } from "./bench_loop";
import { cachedNotes } from "./cached";
import { postgresNotes } from "./postgres";
import { rpcNotes } from "./rpc";
import { sdkNotes } from "./sdk";
import { sqliteNotes } from "./sqlite";
import { noteOps } from "./workload";

export const sdkOps = { ...noteOps(sdkNotes), bench_loop: benchLoop };
export const cachedOps = noteOps(perConnection(cachedNotes));
export const rpcOps = noteOps(perConnection(rpcNotes));
export const postgresOps = noteOps(perConnection((connection) => postgresNotes(poolOf(connection))));
export const drizzleOps = noteOps(perConnection((connection) => postgresDrizzleNotes(poolOf(connection))));
export const sqliteOps = noteOps(perConnection((connection) => sqliteNotes(sqliteDatabaseOf(connection))));
