import type { WorkloadCase } from "../../workloads/workload";
import { ycsbDatabaseOps } from "../../workloads/ycsb/database_ops";

const workloadCase: WorkloadCase = {
  system: "redis_direct",
  label: "Redis without a server in front",
  ops: ycsbDatabaseOps,
  isOptional: true,
};

export default workloadCase;
