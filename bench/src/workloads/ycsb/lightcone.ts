// YCSB with this repository's SDK on both sides.

import { DbConnection } from "../../../bindings/ycsb-lightcone";
import { sdkDefinition } from "../sdk_definition";
import type { WorkloadCase } from "../workload";
import { ycsbSdkOps } from "./sdk_ops";

export const lightconeYcsb: WorkloadCase = {
  system: "lightcone",
  label: "Lightcone, TypeScript module",
  ops: ycsbSdkOps,
  definition: sdkDefinition({
    key: "lightcone",
    modulePath: "../modules/ycsb-ts",
    database: "ycsb",
    builder: () => DbConnection.builder(),
  }),
};
