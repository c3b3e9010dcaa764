// Strings as they are read: what they are, and what they take.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeUtf8 } from "../src/core/utf8";

test("any text of any length, anywhere in the bytes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 60 }), fc.nat(9), (text, before) => {
      const bytes = new TextEncoder().encode(`${"x".repeat(before)}${text}yyy`);
      expect(decodeUtf8(bytes, before, bytes.length - 3)).toBe(text);
    }),
  );
});

test.each([1, 8, 24, 25, 32])("a string of %d letters takes little more than its letters", (length) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const count = 20_000;
  const bytes = new Uint8Array(count * length).map((_, i) => 97 + ((i * 7) % 26));
  const read = (): string[] =>
    Array.from({ length: count }, (_, i) => decodeUtf8(bytes, i * length, (i + 1) * length));
  read();
  collect();
  const before = process.memoryUsage().heapUsed;
  const strings = read();
  collect();
  const each = (process.memoryUsage().heapUsed - before) / strings.length;
  // A pointer, a header, and the letters; a string put together letter by letter took 32 bytes for each.
  expect(each).toBeLessThan(64 + length);
});
