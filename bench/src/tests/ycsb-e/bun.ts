import type { WorkloadCase } from "../../workloads/workload";
import { ycsbRpcOps } from "../../workloads/ycsb/rpc_ops";

const workloadCase: WorkloadCase = { system: "bun", label: "Bun + Postgres", ops: ycsbRpcOps };
export default workloadCase;
