export { bunHttpCase as default } from "../../workloads/http_floor/workload";
