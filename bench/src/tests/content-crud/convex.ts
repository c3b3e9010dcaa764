import { contentRpcCase } from "../../workloads/content/rpc_cases";

export default contentRpcCase("convex", "Convex");
