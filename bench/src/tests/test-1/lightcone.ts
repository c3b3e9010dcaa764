import { reducerTransfer } from "../../scenario_recipes/reducer_single";
import type { TestCase } from "../../scenario_recipes/test_case";

const testCase: TestCase = {
  system: "lightcone",
  label: "Lightcone client and TypeScript module",
  run: reducerTransfer,
};
export default testCase;
