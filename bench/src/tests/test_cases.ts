// A test is the directory of its name: each file in it is one test case, unless its name begins with an underscore.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { UsageError } from "../config";
import type { TestCase } from "../scenario_recipes/test_case";

export interface FoundTestCase {
  testCase: TestCase;
  /** E.g. `spacetimedb.ts`. */
  file: string;
}

const testNames = () =>
  readdirSync(import.meta.dirname, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);

export async function testCasesOf(test: string): Promise<FoundTestCase[]> {
  const directory = join(import.meta.dirname, test);
  if (!/^[a-z0-9-]+$/.test(test) || !existsSync(directory)) {
    throw new UsageError(`there is no test ${test}; there are ${testNames().join(", ")}`);
  }
  const files = readdirSync(directory).filter(
    (name) => /\.[tj]s$/.test(name) && !name.endsWith(".d.ts") && !name.startsWith("_"),
  );
  const found: FoundTestCase[] = [];
  for (const file of files) {
    const module = (await import(pathToFileURL(join(directory, file)).href)) as { default?: TestCase };
    if (!module.default?.system)
      throw new Error(`${join(directory, file)} has no test case as its default export`);
    found.push({ testCase: module.default, file });
  }
  return found;
}
