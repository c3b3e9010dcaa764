export { jobLeaseWorkload as workload } from "../../workloads/jobs/workload";
