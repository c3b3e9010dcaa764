export { rustYcsb as default } from "../../workloads/ycsb/sdk_cases";
