import type { WorkloadCase } from "../../workloads/workload";
import { ycsbRpcOps } from "../../workloads/ycsb/rpc_ops";

const workloadCase: WorkloadCase = {
  system: "sqlite_batched_rpc",
  label: "Node.js + SQLite, batched",
  ops: ycsbRpcOps,
};

export default workloadCase;
