export { rustJobs as default } from "../../workloads/jobs/sdk_cases";
