import { contentRpcCase } from "../../workloads/content/rpc_cases";

export default contentRpcCase("postgres_rpc", "Node.js, Postgres (RPC, Drizzle)");
