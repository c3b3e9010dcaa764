import { jobRpcOps } from "../../workloads/jobs/ops";
import type { WorkloadCase } from "../../workloads/workload";

const workloadCase: WorkloadCase = { system: "bun", label: "Bun + Postgres", ops: jobRpcOps };
export default workloadCase;
