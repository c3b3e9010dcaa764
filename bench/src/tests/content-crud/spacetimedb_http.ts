export { routesContent as default } from "../../workloads/content/routes_case";
