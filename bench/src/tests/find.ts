// Looks things up in the table of the suite.

import { UsageError } from "../config";
import type { ConnectorDefinition } from "../connectors/definition";
import type { RunOperation, Workload } from "../workloads/workload";
import { connectors, suites, type TestRow, tests } from "./table";

export const connectorKeys = Object.keys(connectors);

/** A connector of a test. */
export interface TestCase {
  system: string;
  label: string;
  /** Only runs when it is named. */
  isOptional: boolean;
  ops(): Promise<Record<string, RunOperation>>;
  definition(): Promise<ConnectorDefinition>;
}

/** The tests that a name stands for. */
export function testsOf(name: string): readonly string[] {
  if (Object.hasOwn(suites, name)) return suites[name]!;
  if (Object.hasOwn(tests, name)) return [name];
  throw new UsageError(`there is no test ${name}; there are ${Object.keys(tests).join(", ")}`);
}

const rowOf = (test: string): TestRow => tests[testsOf(test)[0]!]!;

export const workloadOf = (test: string): Promise<Workload> => rowOf(test).workload();

/** The connectors of a test, by their names. */
export function casesOf(test: string): TestCase[] {
  const { ways, optional } = rowOf(test);
  const cases = ways.flatMap(({ ops, labels }) =>
    Object.entries(labels).map(([system, label]) => ({
      system,
      label,
      isOptional: optional?.includes(system) ?? false,
      ops,
      definition: () => loadConnector(system, test),
    })),
  );
  return cases.sort((a, b) => (a.system < b.system ? -1 : 1));
}

/** A connector as a test needs it. */
export async function loadConnector(key: string, test = "test-1"): Promise<ConnectorDefinition> {
  const { ways, module } = rowOf(test);
  const own = ways.find(({ labels }) => Object.hasOwn(labels, key))?.definition;
  if (own) return own(key);
  const load = Object.hasOwn(connectors, key) ? connectors[key] : undefined;
  if (load) return load(module, key);
  throw new UsageError(`${key} is not a valid value for --connectors; there are ${connectorKeys.join(", ")}`);
}
