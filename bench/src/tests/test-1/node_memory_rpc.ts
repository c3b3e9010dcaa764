import { rpcTransfer } from "../../scenario_recipes/rpc_single_call";
import type { TestCase } from "../../scenario_recipes/test_case";

const testCase: TestCase = {
  system: "node_memory_rpc",
  label: "Node.js, a Map, nothing on disk",
  run: rpcTransfer,
};
export default testCase;
