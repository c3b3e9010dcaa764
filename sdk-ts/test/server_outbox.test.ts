// Declarations of outbox tables (spec 02 §8.7a), and the hash of signatures.

import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { t } from "../src/core/type_builders";
import type { RowObj } from "../src/core/type_inference";
import { keccak256 } from "../src/server/keccak";
import { remoteReducer } from "../src/server/outbox";
import { Datastore } from "./support/datastore";
import { hex, Module } from "./support/host";

const signatureHash = (params: RowObj) => remoteReducer("receive", params).signatureHash;

const HEAD = `
import { remoteReducer, schema, t, table } from "spacetimedb/server";
const ping = remoteReducer("receive_ping", { body: t.string() });
const row = { id: t.u64().primaryKey().autoInc(), to: t.identity(), body: t.string(), count: t.u32() };
`;
const load = (source: string) => Module.load(HEAD + source, "ours", new Datastore().functions);

it("hashes as the reference does", () => {
  expect(hex(keccak256(new Uint8Array()))).toBe(
    "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
  );
  const long = keccak256(new Uint8Array(136));
  expect(hex(long)).toBe("3a5912a7c5faa06ee4fe906253e339467a9ce87d533c65be3c15cb231cdb25f9");
  expect(hex(signatureHash({ body: t.string() }))).toBe(
    "386957a94632958d5ae8343e258f3a6f9dce9d7dafc46831050894baa7a4e4e1",
  );
  expect(hex(signatureHash({}))).toBe("bc436888fd947d2bfd49ed6bddad31f0245c34fd42c85f9360fa0b477aa957fc");
});

it("gives types of parameters numbers of their own", () => {
  const point = t.object("Point", { x: t.i32() });
  const line = () => t.object("Line", { from: point, to: t.array(point) });
  const one = hex(signatureHash({ line: line() }));
  expect(hex(signatureHash({ line: line() }))).toBe(one);
  expect(hex(signatureHash({ other: line() }))).not.toBe(one);
});

it("declares outbox tables behind the other sections", async () => {
  const module = await load(`
const pingOut = table({ name: "pings", outbox: { reducer: ping, target: "to" } }, row);
const spacetimedb = schema({ pingOut });
export default spacetimedb;
const result = t.result(t.unit(), t.string());
export const onPing = spacetimedb.reducer({ onResult: pingOut }, { row: pingOut.rowType, result }, () => {});
`);
  const definition = hex(module.hooks.__describe_module__());
  expect(definition.slice(2, 10)).toBe("10000000");
  expect(definition).toMatch(
    new RegExp(
      "10010000000700000070696e674f75740c000000726563656976655f70696e67010001000000020000060000006f6e50696e67" +
        "386957a94632958d5ae8343e258f3a6f9dce9d7dafc46831050894baa7a4e4e1$",
    ),
  );
});

it("refuses what cannot be", async () => {
  const table = (outbox: string, more = "") =>
    load(`
const out = table({ outbox: ${outbox} }, row);
const spacetimedb = schema({ out });
export default spacetimedb;
${more}`).then((module) => module.hooks.__describe_module__());
  await expect(table(`{ reducer: ping, target: "nowhere" }`)).rejects.toThrow("no column for its target");
  const other = `remoteReducer("r", { some_text: t.string() })`;
  await expect(table(`{ reducer: ${other}, target: "to" }`)).rejects.toThrow(
    "outbox table out has no column for the parameter `some_text` of `r` [LC0803]",
  );
  await expect(table(`{ reducer: ${other}, target: "to", params: { some_text: "count" } }`)).rejects.toThrow(
    "column count of outbox table out has another type",
  );
  const callback = (name: string, of: string) =>
    `export const ${name} = spacetimedb.reducer({ onResult: ${of} }, { row: out.rowType }, () => {});`;
  const good = `{ reducer: ping, target: "to" }`;
  await expect(table(good, callback("a", "out") + callback("b", "out"))).rejects.toThrow(
    "a and b both have `onResult: out`",
  );
  await expect(table(good, callback("a", "table({}, row)"))).rejects.toThrow("is no outbox table");
});

it("hashes as generated bindings have it", async () => {
  const file = new URL("types/fixtures/remote_bindings.ts", import.meta.url);
  const { signatureHash: hash } = remoteReducer("receive", { number: t.u64(), text: t.string() });
  expect(await readFile(file, "utf8")).toContain(`signatureHash: Uint8Array.of(${hash.join(", ")})`);
});

it("is the module of the tests of the database", async () => {
  const source = await readFile(new URL("../../modules/latest-ts/src/index.ts", import.meta.url), "utf8");
  const module = await Module.load(
    source.replace("lightcone/server", "spacetimedb/server"),
    "ours",
    new Datastore().functions,
  );
  expect(hex(module.hooks.__describe_module__()).slice(2, 10)).toBe("11000000");
});
