import { reducerTransfer } from "../../scenario_recipes/reducer_single";
import type { TestCase } from "../../scenario_recipes/test_case";

const testCase: TestCase = {
  system: "spacetimedb",
  label: "SpacetimeDB client (npm 2.10.1), TypeScript module",
  run: reducerTransfer,
};
export default testCase;
