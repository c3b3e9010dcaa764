export { spacetimedbJobs as default } from "../../workloads/jobs/sdk_cases";
