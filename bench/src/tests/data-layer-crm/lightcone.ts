export { lightconeCrm as default } from "../../workloads/data_layer_crm/cases";
