export { dataLayerCrmWorkload as workload } from "../../workloads/data_layer_crm/workload";
