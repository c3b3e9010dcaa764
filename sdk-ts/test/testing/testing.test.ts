// What `lightcone/testing` makes of the JSON of the server, what it sends, and how it waits.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { Identity, Timestamp } from "../../src/core";
import { ServerKeys } from "../../src/testing/keys";
import { findPrograms } from "../../src/testing/program";
import { until } from "../../src/testing/until";
import { parseJson, rowOf, toJson } from "../../src/testing/values";

const named = (name: string, algebraic_type: object) => ({ name: { some: name }, algebraic_type });
const product = (...elements: object[]) => ({ Product: { elements } });
const unit = product();

test("large integers keep all digits, and texts with digits stay texts", () => {
  expect(parseJson('[18446744073709551615,-9223372036854775808,"12345678901234567890",1.5,1234567]')).toEqual(
    ["18446744073709551615", "-9223372036854775808", "12345678901234567890", 1.5, 1234567],
  );
  expect(parseJson('["a \\" 12345678901234567890",1e300]')).toEqual(['a " 12345678901234567890', 1e300]);
});

test("a row has the values of a client", () => {
  const option = { Sum: { variants: [named("some", { String: [] }), named("none", unit)] } };
  const shape = { Sum: { variants: [named("Dot", unit), named("Circle", { U8: [] })] } };
  const result = { Sum: { variants: [named("ok", { U8: [] }), named("err", { String: [] })] } };
  const elements = [
    named("id", { U64: [] }),
    named("small", { U32: [] }),
    named("wide", { I256: [] }),
    named("bytes", { Array: { U8: [] } }),
    named("list", { Array: { I64: [] } }),
    named("who", product(named("__identity__", { U256: [] }))),
    named("at", product(named("__timestamp_micros_since_unix_epoch__", { I64: [] }))),
    named("maybe", option),
    named("never", option),
    named("dot", shape),
    named("circle", shape),
    named("outcome", result),
    named("point", product(named("x", { F64: [] }), named("y", { F32: [] }))),
  ];
  const text =
    '["18446744073709551615",7,"-0x1","00ff",[1,2],["0xc2"],[5],[0,"yes"],[1,[]],[0,[]],[1,3],[1,"no"],[1.5,"NaN"]]';
  expect(rowOf({ elements } as any, parseJson(text) as any[])).toEqual({
    id: 18446744073709551615n,
    small: 7,
    wide: -1n,
    bytes: new Uint8Array([0, 255]),
    list: [1n, 2n],
    who: new Identity(0xc2n),
    at: new Timestamp(5n),
    maybe: "yes",
    never: undefined,
    dot: { tag: "Dot" },
    circle: { tag: "Circle", value: 3 },
    outcome: { err: "no" },
    point: { x: 1.5, y: Number.NaN },
  });
});

test("arguments are what the server takes", () => {
  const values = [2n ** 64n - 1n, "x", undefined, [1], new Uint8Array([255]), new Identity(0xc2n)];
  expect(toJson(values)).toBe('[18446744073709551615,"x",null,[1],"ff",{"__identity__":"0xc2"}]');
  expect(toJson({ at: new Timestamp(5n), kind: { tag: "Dot" } })).toBe(
    '{"at":{"__timestamp_micros_since_unix_epoch__":5},"kind":{"Dot":[]}}',
  );
});

test("until returns what holds at last, and throws the last failure", async () => {
  let calls = 0;
  expect(
    await until(() => {
      calls += 1;
      if (calls < 3) throw new Error("not yet");
      return calls;
    }),
  ).toBe(3);
  await expect(
    until(() => {
      throw new Error("never");
    }, 20),
  ).rejects.toThrow("never");
  await expect(until(() => false, 20)).rejects.toThrow("waited 20 ms in vain");
});

test("tokens carry subject, issuer and claims", () => {
  const token = new ServerKeys().token({ subject: "ann", issuer: "https://x", claims: { role: "admin" } });
  const payload = JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString());
  expect(payload).toMatchObject({ sub: "ann", iss: "https://x", role: "admin", aud: ["spacetimedb"] });
});

test("a program that is not there is told", () => {
  expect(() => findPrograms("/nowhere/spacetime", "/")).toThrow(
    /\/nowhere\/spacetime does not exist.*\[LC0858\]/s,
  );
});

test("the program is that of the project's @lightcone/cli, also where a package manager nests it", () => {
  const project = mkdtempSync(join(tmpdir(), "lightcone-project-"));
  const write = (path: string, text: string): string => {
    const file = join(project, "node_modules/@lightcone", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  };
  write("cli/package.json", '{ "name": "@lightcone/cli", "type": "module", "exports": "./index.js" }');
  write("cli/index.js", "");
  const platform = `cli/node_modules/@lightcone/${process.platform}-${process.arch}`;
  write(`${platform}/package.json`, "{}");
  const cli = write(`${platform}/bin/spacetime`, "");
  expect(() => findPrograms("", project)).toThrow(/spacetimedb-standalone is not beside/);
  const server = write(`${platform}/bin/spacetimedb-standalone`, "");
  expect(findPrograms("", project)).toEqual({ cli, server });
  rmSync(project, { recursive: true });
});
