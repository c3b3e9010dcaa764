export { bunNotes as default } from "../../workloads/data_layer/rpc_cases";
