export { rustContent as default } from "../../workloads/content/sdk_cases";
