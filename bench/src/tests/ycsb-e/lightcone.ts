export { lightconeYcsb as default } from "../../workloads/ycsb/sdk_cases";
