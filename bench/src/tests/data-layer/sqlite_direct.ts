export { sqliteDirectNotes as default } from "../../workloads/data_layer/direct";
