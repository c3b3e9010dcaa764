// data-layer-crm on databases without a server in between, and on the module of the notes with either client SDK.

import { Timestamp as LightconeTimestamp } from "lightcone";
import { Timestamp as SpacetimedbTimestamp } from "spacetimedb";
import { DbConnection as LightconeConnection } from "../../../bindings/notes-lightcone";
import { DbConnection as SpacetimedbConnection } from "../../../bindings/notes-spacetimedb";
import { poolOf } from "../../connectors/postgres_direct";
import { sqliteDatabaseOf, definition as sqliteDirect } from "../../connectors/sqlite_direct";
import { benchLoop } from "../data_layer/bench_loop";
import { perConnection } from "../per_connection";
import { sdkDefinition } from "../sdk_definition";
import type { WorkloadCase } from "../workload";
import { postgresCrm } from "./postgres";
import { sdkCrm } from "./sdk";
import { sqliteCrm } from "./sqlite";
import { crmOps } from "./workload";

export const postgresDirectCrm: WorkloadCase = {
  system: "postgres_direct",
  label: "node-postgres",
  ops: crmOps(perConnection((connection) => postgresCrm(poolOf(connection)))),
};

export const sqliteDirectCrm: WorkloadCase = {
  system: "sqlite_direct",
  label: "SQLite, in process",
  ops: crmOps(perConnection((connection) => sqliteCrm(sqliteDatabaseOf(connection)))),
  definition: sqliteDirect,
};

const shared = { module: "notes", neededProcedure: "crmCounts" };

const opsWith = (timestampOf: (microseconds: bigint) => unknown) => ({
  ...crmOps(perConnection((connection) => sdkCrm(connection, timestampOf))),
  bench_loop: benchLoop,
});

export const lightconeCrm: WorkloadCase = {
  system: "lightcone",
  label: "Lightcone, TypeScript module",
  ops: opsWith((microseconds) => new LightconeTimestamp(microseconds)),
  definition: sdkDefinition({ key: "lightcone", ...shared, builder: () => LightconeConnection.builder() }),
};

const npmOps = opsWith((microseconds) => new SpacetimedbTimestamp(microseconds));

export const spacetimedbCrm: WorkloadCase = {
  system: "spacetimedb",
  label: "npm client, TypeScript module",
  ops: npmOps,
  definition: sdkDefinition({
    key: "spacetimedb",
    ...shared,
    builder: () => SpacetimedbConnection.builder(),
  }),
};

export const rustCrm: WorkloadCase = {
  system: "spacetimedb_rust",
  label: "npm client, Rust module",
  ops: npmOps,
  definition: sdkDefinition({
    key: "spacetimedb_rust",
    ...shared,
    builder: () => SpacetimedbConnection.builder(),
  }),
};
