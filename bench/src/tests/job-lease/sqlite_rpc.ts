import { jobRpcOps } from "../../workloads/jobs/ops";
import type { WorkloadCase } from "../../workloads/workload";

const workloadCase: WorkloadCase = { system: "sqlite_rpc", label: "Node.js + SQLite", ops: jobRpcOps };
export default workloadCase;
