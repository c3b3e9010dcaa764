export { subscribedNotesCase as default } from "../../workloads/data_layer/sub_case";
