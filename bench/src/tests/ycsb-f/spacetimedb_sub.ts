export { subscribedYcsb as default } from "../../workloads/ycsb/sub_case";
