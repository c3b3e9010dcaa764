export { authedLoadWorkload as workload } from "../../workloads/authed_load/workload";
