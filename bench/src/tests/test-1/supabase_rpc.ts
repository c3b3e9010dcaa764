import { rpcTransfer } from "../../scenario_recipes/rpc_single_call";
import type { TestCase } from "../../scenario_recipes/test_case";

const testCase: TestCase = { system: "supabase_rpc", label: "Node.js + Supabase", run: rpcTransfer };
export default testCase;
