import { rpcTransfer } from "../../scenario_recipes/rpc_single_call";
import type { TestCase } from "../../scenario_recipes/test_case";

const testCase: TestCase = {
  system: "sqlite_batched_rpc",
  label: "Node.js + SQLite, batched",
  run: rpcTransfer,
};
export default testCase;
