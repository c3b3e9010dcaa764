import { reducerTransfer } from "../../scenario_recipes/reducer_single";
import type { TestCase } from "../../scenario_recipes/test_case";

const testCase: TestCase = {
  system: "spacetimedb_http",
  label: "HTTP call of the reducer",
  run: reducerTransfer,
};
export default testCase;
