import { jobRpcOps } from "../../workloads/jobs/ops";
import type { WorkloadCase } from "../../workloads/workload";

const workloadCase: WorkloadCase = { system: "postgres_rpc", label: "Node.js + Postgres", ops: jobRpcOps };
export default workloadCase;
