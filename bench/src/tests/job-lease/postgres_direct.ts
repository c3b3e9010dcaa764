import { jobPostgresDirectOps } from "../../workloads/jobs/ops";
import type { WorkloadCase } from "../../workloads/workload";

const workloadCase: WorkloadCase = {
  system: "postgres_direct",
  label: "Postgres without a server in front",
  ops: jobPostgresDirectOps,
};
export default workloadCase;
