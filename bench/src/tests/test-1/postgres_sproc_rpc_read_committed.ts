import { rpcTransfer } from "../../scenario_recipes/rpc_single_call";
import type { TestCase } from "../../scenario_recipes/test_case";

const testCase: TestCase = {
  system: "postgres_sproc_rpc_read_committed",
  label: "Node.js + Postgres, stored procedure, READ COMMITTED",
  run: rpcTransfer,
};
export default testCase;
