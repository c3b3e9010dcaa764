export { rustCrm as default } from "../../workloads/data_layer_crm/cases";
