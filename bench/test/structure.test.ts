// The table of the suite is whole, imports have no circles, and results of before are read.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { readRuns } from "../src/core/results";
import { casesOf, connectorKeys, testsOf, workloadOf } from "../src/tests/find";
import { suites, tests } from "../src/tests/table";
import { runFile } from "./support/run_file";

const names = Object.keys(tests);

describe("the table", () => {
  it.each(names)("has all that %s needs", async (test) => {
    expect((await workloadOf(test)).name).toBe(test);
    const cases = casesOf(test);
    expect(new Set(cases.map(({ system }) => system)).size).toBe(cases.length);
    for (const { system, definition, ops } of cases) {
      expect((await definition()).key, `${test}, ${system}`).toBe(system);
      expect(Object.values(await ops()).length, `${test}, ${system}`).toBeGreaterThan(0);
    }
  });

  it("has no connector without a test, and no suite of unknown tests", () => {
    const used = new Set(names.flatMap((test) => casesOf(test).map(({ system }) => system)));
    expect([...used].sort()).toEqual([...connectorKeys].sort());
    for (const suite of Object.values(suites)) for (const test of suite) expect(names).toContain(test);
    expect(() => testsOf("toString")).toThrow("there is no test toString");
  });
});

const source = resolve(import.meta.dirname, "../src");

/** What each file imports of the others, types included; what is loaded when it is used is another matter. */
const imports = new Map(
  readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => {
      const path = join(source, name);
      const found = readFileSync(path, "utf8").matchAll(/^(?:import|export|\}) .*?from "(\.[^"]+)";$/gm);
      return [path, [...found].map(([, to]) => `${resolve(dirname(path), to!)}.ts`)];
    }),
);

describe("imports", () => {
  it("have no circles", () => {
    expect([...imports.values()].flat().length).toBeGreaterThan(imports.size);
    const done = new Set<string>();
    const visit = (file: string, above: string[]): void => {
      expect(above.includes(file), [...above, file].join("\n")).toBe(false);
      if (done.has(file)) return;
      for (const next of imports.get(file) ?? []) visit(next, [...above, file]);
      done.add(file);
    };
    for (const file of imports.keys()) visit(file, []);
  });

  it("are not in the files of shapes that all others share", () => {
    for (const name of ["core/result.ts", "connectors/connector.ts", "config.ts"])
      expect(imports.get(join(source, name)), name).toEqual([]);
  });
});

describe("results", () => {
  it("of before are read as those of today, with all of their figures", () => {
    const today = runFile({ tps: 7 });
    const before = JSON.parse(JSON.stringify(today)) as { results: [{ res: object }] };
    const [entry] = before.results;
    for (const key of ["ops", "load", "elapsed_s", "misses", "extras", "unsent", "unfinished", "repetitions"])
      Reflect.deleteProperty(entry.res, key);
    Reflect.deleteProperty(entry, "parameters");
    const directory = mkdtempSync(join(tmpdir(), "lightcone-bench-results-"));
    writeFileSync(join(directory, "run.json"), JSON.stringify(before));
    const [{ file } = { file: undefined }] = readRuns([directory], false);
    rmSync(directory, { recursive: true });
    expect(file).toEqual(today);
  });

  it("that are committed are all read", () => {
    const committed = readRuns([resolve(source, "../results")], true);
    expect(committed.length).toBeGreaterThan(100);
    for (const { file, path } of committed)
      expect(file.results[0].res.repetitions.tps_mean, path).toBeGreaterThan(0);
  });
});
