export { jobQueueWorkload as workload } from "../../workloads/jobs/workload";
