import { reducerTransfer } from "../../scenario_recipes/reducer_single";
import type { TestCase } from "../../scenario_recipes/test_case";

const testCase: TestCase = {
  system: "spacetimedb_ref_rust",
  label: "SpacetimeDB client (npm 2.10.1), server of --stdb-ref-url",
  run: reducerTransfer,
};
export default testCase;
