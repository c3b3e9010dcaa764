import { describe, expect, it } from "vitest";
import { Datastore } from "./support/datastore";
import { hostError, Module, type Sdk } from "./support/host";
import { type CallVector, type HostCall, type ModuleVector, replay, vectors } from "./support/replay";

// The vectors of 04 §13, for this SDK and, so that the vectors themselves are checked, for the published package.

interface Calls {
  modules: ModuleVector[];
  calls: CallVector[];
  write_backs: { name: string; reads: string; writes: string; returns: number }[];
}

interface Errors {
  classes: { code: number; class: string }[];
  text: { code: number; message: string; string: string };
  /** What hosts check: crates/host-js has tests of it. */
  argument_checks: object[];
}

const file = vectors<Calls>("04-calls.json");
const errors = vectors<Errors>("04-errors.json");

const moduleOf = (name: string): ModuleVector => {
  const module = file.modules.find((module) => module.name === name);
  if (module === undefined) throw new Error(`04-calls.json has no module ${name}`);
  return module;
};

const person = moduleOf("person");
const reducer = (name: string) => person.exports["reducers"]!.indexOf(name);

const LOOKUPS = [
  'table_id_from_name("person")',
  'index_id_from_name("person_id_idx_btree")',
  'index_id_from_name("person_name_idx_btree")',
  'index_id_from_name("person_name_age_idx_btree")',
];

/** A module whose rows begin with a counted column, as in `write_backs`. */
const COUNTED: ModuleVector = {
  name: "counted row of 14 bytes",
  source: [
    `import { schema, t, table } from "spacetimedb/server";`,
    `const s = schema({ c: table({}, { a: t.u32().primaryKey().autoInc(), b: t.u16(), c: t.i64() }) });`,
    `export const add = s.reducer((ctx) => { console.log(ctx.db.c.insert({ a: 0, b: 2, c: -1n }).a); });`,
    `export default s;`,
  ],
  exports: { reducers: ["add"] },
};

describe.each<[string, Sdk]>([
  ["lightcone", "ours"],
  ["the published package", "npm"],
])("vectors of the JavaScript ABI: %s", (_, sdk) => {
  it("are all read", () => {
    expect(Object.keys(file)).toEqual(["modules", "calls", "write_backs"]);
    expect(Object.keys(errors)).toEqual(["classes", "text", "argument_checks"]);
    const called = new Set(file.calls.map((call) => call.module));
    expect(file.modules.map((module) => module.name)).toEqual([...called]);
  });

  it.each(file.calls)("$name", async (call) => {
    await replay(moduleOf(call.module), call, sdk);
  });

  it.each(file.write_backs)("$name", async ({ reads, writes, returns }) => {
    const length = reads.length / 2;
    const insert = { function: "datastore_insert_bsatn", args: [4096, { buffer: 65536 }, length], reads };
    const count = Buffer.from(writes, "hex").readUInt32LE();
    const host_calls: HostCall[] = [
      { ...insert, writes, returns },
      { function: "console_log", args: [2, String(count)] },
    ];
    const args = [0, "4660n", "0n", "1700000000000000n", { data_view: "" }];
    const call = {
      name: "add",
      module: COUNTED.name,
      hook: "__call_reducer__",
      args,
      returns: null,
      host_calls,
    };
    await replay(COUNTED, call, sdk);
  });

  const load = (data: Datastore) => Module.load(person.source.join("\n"), sdk, data.functions);

  it("13.4: errors of the host are classes of the module", async () => {
    const module = await load(new Datastore(person.ids));
    const { code, message, string } = errors.text;
    expect(String(hostError(module, code, message))).toBe(string);
    const names = errors.classes.map(({ code }) => ({
      code,
      class: (hostError(module, code, "m") as Error).name,
    }));
    expect(names).toEqual(errors.classes);
  });

  it("looks tables up in the first call only", async () => {
    const data = new Datastore(person.ids);
    const module = await load(data);
    const add = () => module.reducer(reducer("add"), "03000000626f6207");
    add();
    expect(data.take().slice(0, 4)).toEqual(LOOKUPS);
    add();
    expect(data.take()).toHaveLength(2);
  });

  it("looks tables up again after a lookup that failed", async () => {
    const data = new Datastore(person.ids);
    const module = await load(data);
    let fail = true;
    const lookup = data.functions["index_id_from_name"]!;
    data.functions["index_id_from_name"] = (name: string) => {
      if (fail) throw hostError(module, 5, "no such index");
      return lookup(name);
    };
    const walkAll = () => module.reducer(reducer("walkAll"));
    const missing = { name: "NoSuchIndex", message: "no such index" };
    expect(walkAll).toThrow(expect.objectContaining(missing));
    fail = false;
    data.take();
    walkAll();
    expect(data.take().slice(0, 4)).toEqual(LOOKUPS);
  });
});
