import { jobRpcOps } from "../../workloads/jobs/ops";
import type { WorkloadCase } from "../../workloads/workload";

const workloadCase: WorkloadCase = { system: "convex", label: "Convex", ops: jobRpcOps };

export default workloadCase;
