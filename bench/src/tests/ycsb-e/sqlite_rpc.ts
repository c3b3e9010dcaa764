import type { WorkloadCase } from "../../workloads/workload";
import { ycsbRpcOps } from "../../workloads/ycsb/rpc_ops";

const workloadCase: WorkloadCase = { system: "sqlite_rpc", label: "Node.js + SQLite", ops: ycsbRpcOps };
export default workloadCase;
