import type { WorkloadCase } from "../../workloads/workload";
import { ycsbPostgresDirectOps } from "../../workloads/ycsb/postgres_direct_ops";

const workloadCase: WorkloadCase = {
  system: "postgres_direct",
  label: "Postgres without a server in front",
  ops: ycsbPostgresDirectOps,
};
export default workloadCase;
