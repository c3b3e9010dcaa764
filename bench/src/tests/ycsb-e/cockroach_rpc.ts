import type { WorkloadCase } from "../../workloads/workload";
import { ycsbRpcOps } from "../../workloads/ycsb/rpc_ops";

const workloadCase: WorkloadCase = {
  system: "cockroach_rpc",
  label: "Node.js + CockroachDB",
  ops: ycsbRpcOps,
};
export default workloadCase;
