import { rpcTransfer } from "../../scenario_recipes/rpc_single_call";
import type { TestCase } from "../../scenario_recipes/test_case";

const testCase: TestCase = {
  system: "bun_read_committed",
  label: "Bun + Postgres, READ COMMITTED",
  run: rpcTransfer,
};
export default testCase;
