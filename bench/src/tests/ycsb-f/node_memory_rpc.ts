import type { WorkloadCase } from "../../workloads/workload";
import { ycsbRpcOps } from "../../workloads/ycsb/rpc_ops";

const workloadCase: WorkloadCase = {
  system: "node_memory_rpc",
  label: "Node.js, a Map, nothing on disk",
  ops: ycsbRpcOps,
};

export default workloadCase;
