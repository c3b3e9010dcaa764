import type { WorkloadCase } from "../../workloads/workload";
import { ycsbDatabaseOps } from "../../workloads/ycsb/database_ops";

const workloadCase: WorkloadCase = {
  system: "mysql_direct",
  label: "MySQL or MariaDB without a server in front",
  ops: ycsbDatabaseOps,
};

export default workloadCase;
