// The vectors of docs/interface/vectors, which tests walk entry by entry.

import { readFileSync } from "node:fs";
import { expect } from "vitest";

const folder = new URL("../../../docs/interface/vectors/", import.meta.url);

/** What a test may find about an entry, besides its own members. */
export interface Entry {
  /** Why no test reads it. */
  untested?: string;
}

/** A file, of the shape that its tests read; vectors.test.ts says which test reads which member. */
export const vectors = <Shape extends object>(name: string): Shape =>
  JSON.parse(readFileSync(new URL(name, folder), "utf8")) as Shape;

/** The tested entries of a list; so many others must say why they are untested. */
export function tested<T extends object>(entries: (T & Entry)[], untested = 0): T[] {
  const rest = entries.filter((entry) => entry.untested === undefined);
  expect(entries.length - rest.length).toBe(untested);
  expect(rest.length).toBeGreaterThan(0);
  return rest;
}

/** How many decimals a number of a file has: it is rounded to them. */
export function decimalsOf(value: number): number {
  const [digits, exponent] = String(value).split("e");
  return (digits!.split(".")[1]?.length ?? 0) - Number(exponent ?? 0);
}
