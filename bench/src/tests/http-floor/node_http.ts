export { nodeHttpCase as default } from "../../workloads/http_floor/workload";
