// YCSB on the modules `ycsb-ts` and `ycsb-rs`, with either client SDK.

import { DbConnection as LightconeConnection } from "../../../bindings/ycsb-lightcone";
import { DbConnection as SpacetimedbConnection } from "../../../bindings/ycsb-spacetimedb";
import { sdkDefinition } from "../sdk_definition";
import type { WorkloadCase } from "../workload";
import { ycsbSdkOps } from "./sdk_ops";

const shared = { module: "ycsb", neededProcedure: "ycsbCount" };

export const lightconeYcsb: WorkloadCase = {
  system: "lightcone",
  label: "Lightcone, TypeScript module",
  ops: ycsbSdkOps,
  definition: sdkDefinition({ key: "lightcone", ...shared, builder: () => LightconeConnection.builder() }),
};

export const spacetimedbYcsb: WorkloadCase = {
  system: "spacetimedb",
  label: "npm client, TypeScript module",
  ops: ycsbSdkOps,
  definition: sdkDefinition({
    key: "spacetimedb",
    ...shared,
    builder: () => SpacetimedbConnection.builder(),
  }),
};

export const rustYcsb: WorkloadCase = {
  system: "spacetimedb_rust",
  label: "npm client, Rust module",
  ops: ycsbSdkOps,
  definition: sdkDefinition({
    key: "spacetimedb_rust",
    ...shared,
    builder: () => SpacetimedbConnection.builder(),
  }),
};
