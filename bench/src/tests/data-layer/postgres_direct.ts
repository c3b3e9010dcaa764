export { postgresDirectNotes as default } from "../../workloads/data_layer/direct";
