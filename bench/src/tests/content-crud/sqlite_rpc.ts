import { contentRpcCase } from "../../workloads/content/rpc_cases";

export default contentRpcCase("sqlite_rpc", "Node.js, SQLite (RPC, Drizzle)");
