export { contentWorkload as workload } from "../../workloads/content/workload";
