import type { WorkloadCase } from "../../workloads/workload";
import { ycsbRpcOps } from "../../workloads/ycsb/rpc_ops";

const workloadCase: WorkloadCase = { system: "postgres_rpc", label: "Node.js + Postgres", ops: ycsbRpcOps };
export default workloadCase;
