export { lightconeContent as default } from "../../workloads/content/sdk_cases";
