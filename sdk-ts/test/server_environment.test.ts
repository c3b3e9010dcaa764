import { expect, it } from "vitest";
import { Datastore } from "./support/datastore";
import { hex, Module } from "./support/host";

const SOURCE = `
import { environment, schema, t } from "spacetimedb/server";
const spacetimedb = schema({});
export default spacetimedb;
export const env = environment({ API_KEY: "string", MODE: { optional: ["dev", "prod"] }, ONE: ["x"] });
export const ask = spacetimedb.procedure(t.string(), (ctx) =>
  [env.API_KEY, env.MODE, ctx.env.get("ONE"), ctx.env.get("MODE")].map(String).join(" "));
export const read = spacetimedb.reducer((ctx) => {
  if (ctx.env.get("API_KEY") !== "") throw new Error("not empty");
});
`;

function functions(values: Record<string, string>) {
  return { ...new Datastore().functions, env_get: (key: string) => values[key] ?? null };
}

it("declares variables behind the other sections, and reads them", async () => {
  const module = await Module.load(SOURCE, "ours", functions({ API_KEY: "secret", ONE: "x" }));
  const definition = hex(module.hooks.__describe_module__());
  expect(definition.slice(2, 10)).toBe("10000000");
  expect(definition).toContain(
    "0f03000000" +
      "070000004150495f4b4559" +
      "0000" +
      "040000004d4f4445" +
      "0202000000" +
      "03000000646576" +
      "0400000070726f64" +
      "01" +
      "030000004f4e45" +
      "010100000078" +
      "00",
  );
  const answer = module.hooks.__call_procedure__(0, 1n, 0n, 0n, new Uint8Array());
  expect(new TextDecoder().decode(answer.slice(4))).toBe("secret undefined x undefined");
});

it("tells an empty value from none", async () => {
  const module = await Module.load(SOURCE, "ours", functions({ API_KEY: "", ONE: "x" }));
  const read = () => module.hooks.__call_reducer__(0, 1n, 0n, 0n, new DataView(new ArrayBuffer(0)));
  expect(read).not.toThrow();
});

it("asks an older host for nothing if there is no environment", async () => {
  const source = `
import { schema } from "spacetimedb/server";
const spacetimedb = schema({});
export default spacetimedb;
export const read = spacetimedb.reducer((ctx) => { ctx.env.get("A"); });
`;
  const { env_get: _, ...older } = functions({});
  const module = await Module.load(source, "ours", older);
  expect(hex(module.hooks.__describe_module__()).slice(2, 10)).toBe("0f000000");
  const read = () => module.hooks.__call_reducer__(0, 1n, 0n, 0n, new DataView(new ArrayBuffer(0)));
  expect(read).toThrow("[LC0811]");
});
