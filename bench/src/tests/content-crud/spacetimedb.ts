export { spacetimedbContent as default } from "../../workloads/content/sdk_cases";
