export { httpFloorWorkload as workload } from "../../workloads/http_floor/workload";
