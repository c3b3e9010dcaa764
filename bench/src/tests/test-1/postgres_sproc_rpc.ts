import { rpcTransfer } from "../../scenario_recipes/rpc_single_call";
import type { TestCase } from "../../scenario_recipes/test_case";

const testCase: TestCase = {
  system: "postgres_sproc_rpc",
  label: "Node.js + Postgres, stored procedure",
  run: rpcTransfer,
};
export default testCase;
