import { lightconeJobs } from "../../workloads/jobs/lightcone";

export default lightconeJobs;
