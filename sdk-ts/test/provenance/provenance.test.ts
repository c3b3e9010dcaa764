// What this package shares with npm package `spacetimedb` is its public interface, and nothing else: outside of exported
// declarations, no longer run of tokens, and of words in comments, stands in both. The files of the published package are
// looked at by this test only; to rewrite what it finds, look at our side only.

import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { packageDirectory } from "../support/host";
import { RunIndex } from "./runs";
import { exportedNames, filesBelow, readSource, type Source, type Token } from "./sources";

const published = join(packageDirectory, "node_modules/spacetimedb");

type Aspect = "tokens" | "shapes" | "words";

/**
 * How many are no coincidence. With two tokens less, runs are found that the public interface forces, such as calls of one
 * exported function by another one. Shapes are what is left when all names are the same.
 */
const RUN_LENGTHS: readonly [Aspect, number][] = [
  ["tokens", 24],
  ["shapes", 60],
  ["words", 8],
];

/** Runs that may stay, by the file and the beginning of its text, each with the reason. */
const ALLOWED: readonly { file: string; begins: string; reason: string }[] = [];

let publicNames: Set<string>;
let ours: Source[];
let theirs: Source[];

beforeAll(() => {
  const { exports } = JSON.parse(readFileSync(join(published, "package.json"), "utf8"));
  publicNames = exportedNames(
    Object.values<{ types: string }>(exports).map(({ types }) => join(published, types)),
  );
  const files = [
    ...filesBelow(join(published, "src"), [".ts", ".tsx"]),
    ...filesBelow(join(published, "dist"), [".d.ts"]),
  ];
  theirs = files.map((file) => readSource(file, publicNames));
  ours = filesBelow(join(packageDirectory, "src"), [".ts", ".tsx"]).map((file) =>
    readSource(file, publicNames),
  );
});

/** What of our sources stands in theirs, for people. */
function findRuns(sources: readonly Source[], aspect: Aspect, lengthMin: number): string[] {
  const index = new RunIndex(
    theirs.map((source) => source[aspect]),
    lengthMin,
  );
  return sources.flatMap((source) => {
    const tokens: readonly Token[] = source[aspect];
    return index.find(tokens).flatMap(({ at, length, other }) => {
      const [start, end] = [tokens[at]!.start, tokens[at + length - 1]!.end];
      const file = relative(packageDirectory, source.file);
      const text = source.text.slice(start, end);
      if (ALLOWED.some((allowed) => allowed.file === file && text.startsWith(allowed.begins))) return [];
      const line = source.text.slice(0, start).split("\n").length;
      const where = relative(published, theirs[other]!.file);
      return `${file}:${line}: ${length} ${aspect} that stand in ${where} too:\n${text}`;
    });
  });
}

describe("outside of the public interface, the published package has in common with our sources", () => {
  test.each(RUN_LENGTHS)("no run of %s, %i of them", (aspect, lengthMin) => {
    expect(ours.length).toBeGreaterThan(90);
    expect(theirs.length).toBeGreaterThan(200);
    expect(findRuns(ours, aspect, lengthMin)).toEqual([]);
  });
});

describe("a copy is found", () => {
  test.each(RUN_LENGTHS)("of a helper file, by its %s", (aspect, lengthMin) => {
    const copied = readSource(join(published, "src/lib/schema.ts"), publicNames);
    expect(findRuns([copied], aspect, lengthMin).length).toBeGreaterThan(0);
  });

  test("and what the package exports is no copy", () => {
    const names = ["AlgebraicType", "InferTypeOfRow", "ReducerCtx", "DbConnectionImpl", "useTable", "Ref"];
    expect(names.filter((name) => !publicNames.has(name))).toEqual([]);
    expect(publicNames.has("AnyTableDef")).toBe(false);
  });
});
