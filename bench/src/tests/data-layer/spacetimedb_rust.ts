export { rustNotes as default } from "../../workloads/data_layer/sdk_cases";
