import { contentRpcCase } from "../../workloads/content/rpc_cases";

export default contentRpcCase("bun", "Bun, Postgres (RPC, Drizzle)");
