// The operations of data-layer-crm on every kind of store.

import { Timestamp as LightconeTimestamp } from "lightcone";
import { Timestamp as SpacetimedbTimestamp } from "spacetimedb";
import { poolOf } from "../../connectors/postgres_direct";
import { sqliteDatabaseOf } from "../../connectors/sqlite_direct";
import { postgresDrizzleCrm } from "../../rpc-servers/crm/postgres_store";
import { benchLoop } from "../data_layer/bench_loop";
import { perConnection } from "../per_connection";
import { postgresCrm } from "./postgres";
import { rpcCrm } from "./rpc";
import { sdkCrm } from "./sdk";
import { sqliteCrm } from "./sqlite";
import { crmOps } from "./workload";

const sdkOps = (timestampOf: (microseconds: bigint) => unknown) => ({
  ...crmOps(perConnection((connection) => sdkCrm(connection, timestampOf))),
  bench_loop: benchLoop,
});

export const lightconeOps = sdkOps((microseconds) => new LightconeTimestamp(microseconds));
export const npmOps = sdkOps((microseconds) => new SpacetimedbTimestamp(microseconds));
export const rpcOps = crmOps(perConnection(rpcCrm));
export const postgresOps = crmOps(perConnection((connection) => postgresCrm(poolOf(connection))));
export const drizzleOps = crmOps(perConnection((connection) => postgresDrizzleCrm(poolOf(connection))));
export const sqliteOps = crmOps(perConnection((connection) => sqliteCrm(sqliteDatabaseOf(connection))));
