import { rpcTransfer } from "../../scenario_recipes/rpc_single_call";
import type { TestCase } from "../../scenario_recipes/test_case";

const testCase: TestCase = {
  system: "postgres_direct",
  label: "Postgres, no server in front",
  run: rpcTransfer,
};
export default testCase;
