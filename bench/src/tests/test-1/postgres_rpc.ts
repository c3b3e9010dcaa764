import { rpcTransfer } from "../../scenario_recipes/rpc_single_call";
import type { TestCase } from "../../scenario_recipes/test_case";

const testCase: TestCase = { system: "postgres_rpc", label: "Node.js + Postgres", run: rpcTransfer };
export default testCase;
