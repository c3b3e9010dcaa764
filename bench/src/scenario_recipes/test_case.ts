// A test case of test-1: how one transfer is asked for. A file per connector lies in src/tests/test-1/.

import type { Connector } from "../connectors/connector";

export interface TestCase {
  /** The connector's key. */
  system: string;
  label?: string;
  run(connector: Connector, from: number, to: number, amount: number): Promise<unknown>;
}
