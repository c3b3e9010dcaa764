// What preparations work with, for tests: a small configuration, and a directory and programs that end with the test.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config } from "../../src/config";
import type { PrepareContext } from "../../src/connectors/definition";
import { ProcessGroup } from "../../src/init/processes";

export interface TestContext extends PrepareContext {
  said: string[];
  end(): void;
}

const settings: Partial<Config> = {
  accounts: 200,
  initialBalance: 1000,
  poolMax: 8,
  pgIsolation: "serializable",
  durability: "on",
  prep: true,
  bunUrl: "http://127.0.0.1:4001",
  convexUrl: "http://127.0.0.1:1",
};

export function testContext(differences: Partial<Config> = {}): TestContext {
  const workDirectory = mkdtempSync(join(tmpdir(), "lightcone-bench-test-"));
  const processes = new ProcessGroup();
  const said: string[] = [];
  return {
    // Preparations and connectors read nothing besides these settings.
    config: { ...settings, ...differences } as Config,
    test: "test-1",
    say: (line) => said.push(line),
    said,
    processes,
    workDirectory,
    end() {
      processes.killAll();
      rmSync(workDirectory, { recursive: true, force: true });
    },
  };
}

/** Runs `action` with variables of the environment set, or unset where they are undefined. */
export async function withEnvironment<T>(
  variables: Record<string, string | undefined>,
  action: () => Promise<T>,
): Promise<T> {
  const before = Object.fromEntries(Object.keys(variables).map((name) => [name, process.env[name]]));
  const set = (values: Record<string, string | undefined>) => {
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
  set(variables);
  try {
    return await action();
  } finally {
    set(before);
  }
}
