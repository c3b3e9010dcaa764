export { spacetimedbYcsb as default } from "../../workloads/ycsb/sdk_cases";
