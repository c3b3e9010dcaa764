export { lightconeJobs as default } from "../../workloads/jobs/sdk_cases";
