import type { WorkloadCase } from "../../workloads/workload";
import { ycsbDatabaseOps } from "../../workloads/ycsb/database_ops";

const workloadCase: WorkloadCase = {
  system: "mongodb_direct",
  label: "MongoDB without a server in front",
  ops: ycsbDatabaseOps,
};

export default workloadCase;
