import { jobRpcOps } from "../../workloads/jobs/ops";
import type { WorkloadCase } from "../../workloads/workload";

const workloadCase: WorkloadCase = {
  system: "postgres_sproc_rpc",
  label: "Node.js + Postgres, prepared statements",
  ops: jobRpcOps,
};
export default workloadCase;
