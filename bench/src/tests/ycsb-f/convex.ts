import type { WorkloadCase } from "../../workloads/workload";
import { ycsbRpcOps } from "../../workloads/ycsb/rpc_ops";

const workloadCase: WorkloadCase = { system: "convex", label: "Convex", ops: ycsbRpcOps };

export default workloadCase;
