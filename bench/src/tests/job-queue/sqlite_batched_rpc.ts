import { jobRpcOps } from "../../workloads/jobs/ops";
import type { WorkloadCase } from "../../workloads/workload";

const workloadCase: WorkloadCase = {
  system: "sqlite_batched_rpc",
  label: "Node.js + SQLite, batched",
  ops: jobRpcOps,
};

export default workloadCase;
