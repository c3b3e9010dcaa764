export { dataLayerWorkload as workload } from "../../workloads/data_layer/workload";
