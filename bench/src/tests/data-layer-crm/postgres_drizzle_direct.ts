export { postgresDrizzleCrmCase as default } from "../../workloads/data_layer_crm/rpc_cases";
