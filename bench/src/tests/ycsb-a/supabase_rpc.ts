import type { WorkloadCase } from "../../workloads/workload";
import { ycsbRpcOps } from "../../workloads/ycsb/rpc_ops";

const workloadCase: WorkloadCase = { system: "supabase_rpc", label: "Node.js + Supabase", ops: ycsbRpcOps };
export default workloadCase;
