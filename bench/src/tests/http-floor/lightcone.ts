export { lightconeHttpCase as default } from "../../workloads/http_floor/workload";
