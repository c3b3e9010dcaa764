// `lightcone/testing` on the built server: databases, users, calls, rows, updates, and what is left when the tests are over.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BINARY, wasm } from "../../../tests/e2e/src/server";
import { Identity, SenderError, Timestamp } from "../../src/client";
import { stopTestServers, TestModule, until } from "../../src/testing";
import { Bank } from "./support";

process.env.LIGHTCONE_BIN = BINARY;

const PACKAGE = join(import.meta.dirname, "../..");
let directory: string;
let things: TestModule;
let bank: TestModule;

beforeAll(async () => {
  // As in a project: built by `spacetime build`, with the built package.
  directory = mkdtempSync(join(tmpdir(), "lightcone-testing-"));
  cpSync(join(import.meta.dirname, "testing_module"), directory, { recursive: true });
  mkdirSync(join(directory, "node_modules"));
  symlinkSync(PACKAGE, join(directory, "node_modules/lightcone"));
  things = await TestModule.load(directory);
  bank = await TestModule.load(wasm("transfer"));
});
afterAll(async () => {
  await stopTestServers();
  rmSync(directory, { recursive: true, force: true });
});

const THING = [
  2n ** 100n,
  new Uint8Array([1, 255]),
  { some: "Nick" },
  { tag: "circle", value: 1.5 },
  ["a", "b"],
];

test("rows come as a client has them, values of all kinds, private tables for the owner", async () => {
  await using database = await things.publish();
  await database.call("add_thing", THING, "ann");
  const [row] = await database.sql("SELECT * FROM thing");
  expect(row).toMatchObject({
    id: 1n,
    big: 2n ** 100n,
    bytes: new Uint8Array([1, 255]),
    nick: "Nick",
    shape: { tag: "circle", value: 1.5 },
    tags: ["a", "b"],
  });
  expect(row!.owner).toBeInstanceOf(Identity);
  expect(row!.made).toBeInstanceOf(Timestamp);
  expect(await database.sql("SELECT * FROM secret")).toEqual([{ id: 1, text: "from init" }]);
  await expect(database.sql("SELECT * FROM secret", "ann")).rejects.toThrow(/secret/);
  expect(await database.logs()).toEqual(["thing of ann"]);
});

test("what the module refuses is a SenderError, what the server refuses an error", async () => {
  await using database = await things.publish();
  const refused = database.call("add_thing", [-1n, ...THING.slice(1)], "ann");
  await expect(refused).rejects.toThrow(SenderError);
  await expect(refused).rejects.toThrow("not negative");
  await expect(database.call("add_thing", [1n])).rejects.toThrow(/invalid arguments/);
  expect(await database.sql("SELECT id FROM thing")).toEqual([]);
});

test("a name is one identity in all databases, claims reach the module, procedures return", async () => {
  await using first = await things.publish();
  await using second = await things.publish();
  for (const database of [first, second]) await database.call("add_thing", THING, "ann");
  await second.call("add_thing", THING, "bob");
  const owners = async (database: typeof first) =>
    (await database.sql("SELECT owner FROM thing")).map(({ owner }) => owner.toHexString());
  const [ann, bob] = await owners(second);
  expect(await owners(first)).toEqual([ann]);
  expect(bob).not.toBe(ann);
  const admin = { subject: "ann", issuer: "https://login.example.com", claims: { role: "admin" } };
  expect(await first.call("role_of", [], admin)).toBe("admin");
  expect(await first.call("role_of", [], "ann")).toBe("undefined");
  expect(await second.call("count", [40n])).toBe(42);
});

test("what the scheduler calls happens, and the owner may call it at once", async () => {
  await using database = await things.publish();
  await database.call("plan", [1], "ann");
  await until(async () => expect(await database.sql("SELECT id FROM secret")).toHaveLength(2));
  await using other = await things.publish();
  await other.call("fire", [
    { scheduled_id: 0n, scheduled_at: { tag: "Interval", value: { __time_duration_micros__: 1n } } },
  ]);
  expect(await other.sql("SELECT text FROM secret WHERE id = 2")).toEqual([{ text: "fired" }]);
});

test("an hour passes when the test says so: what is due runs at its time, in order", async () => {
  const noon = new Date("2030-01-01T12:00:00Z");
  const later = await TestModule.load(directory, { time: noon });
  await using database = await later.publish();
  await using other = await later.publish();
  const at = (ms: number) => Timestamp.fromDate(new Date(noon.getTime() + ms));
  await database.call("add_thing", THING, "ann");
  expect(await database.sql("SELECT made FROM thing")).toEqual([{ made: at(0) }]);
  await database.call("live", [1_200_000, 1_800_000]);
  expect(await database.advance(1_199_999)).toEqual(at(1_199_999));
  expect(await database.sql("SELECT what FROM beat")).toEqual([]);
  expect(await database.advance(3_600_000 - 1_199_999)).toEqual(at(3_600_000));
  const beats = await database.sql("SELECT * FROM beat");
  expect(beats.sort((a, b) => Number(a.at.toMillis() - b.at.toMillis()))).toEqual([
    { at: at(1_200_000), what: "pulse" },
    { at: at(1_800_000), what: "chore" },
    { at: at(2_400_000), what: "pulse" },
    { at: at(3_600_000), what: "pulse" },
  ]);
  expect(await database.sql("SELECT scheduled_id FROM chore")).toEqual([]);
  // A month of them.
  expect(await database.advance(new Date("2030-01-31T12:00:00Z"))).toEqual(at(30 * 86_400_000));
  expect(await database.sql("SELECT what FROM beat")).toHaveLength(30 * 72 + 1);
  await expect(database.advance(noon)).rejects.toThrow("time does not go back");
  expect(await other.advance(0), "each database has its own clock").toEqual(at(0));
});

test("the clock of other servers is not a test's", async () => {
  await using database = await things.publish();
  await expect(database.advance(1)).rejects.toThrow("LC0160");
  const server = join(dirname(BINARY), "spacetimedb-standalone");
  for (const options of [["--listen-addr=127.0.0.1:0"], ["--in-memory", "--listen-addr=0.0.0.0:0"]]) {
    const args = ["start", "--test-time-us=1", "--data-dir", join(directory, "never"), ...options];
    const { status, stderr } = spawnSync(server, args, { encoding: "utf8" });
    expect([status, stderr]).toEqual([1, expect.stringContaining("LC0161")]);
  }
});

test("clients are connected and subscribed, and see each other", async () => {
  await using database = await bank.publish();
  await database.call("seed", [2, 100n]);
  const ann = await database.connect(Bank, { as: "ann", subscribe: "SELECT * FROM accounts" });
  const stranger = await database.connect(Bank, { subscribe: ["SELECT * FROM accounts WHERE id = 1"] });
  expect(ann.identity!.toHexString()).not.toBe(stranger.identity!.toHexString());
  expect([ann.db.accounts.count(), stranger.db.accounts.count()]).toEqual([2n, 1n]);
  await ann.reducers.transfer({ from: 0, to: 1, amount: 30n });
  expect(ann.db.accounts.id.find(0)?.balance).toBe(70n);
  await until(() => expect(stranger.db.accounts.id.find(1)?.balance).toBe(130n));
  await expect(ann.reducers.transfer({ from: 0, to: 1, amount: 71n })).rejects.toThrow("insufficient_funds");
  await expect(database.connect(Bank, { subscribe: "SELECT * FROM nothing" })).rejects.toThrow(/nothing/);
});

test("another version keeps the rows", async () => {
  await using database = await things.publish();
  await database.call("add_thing", THING);
  const next = mkdtempSync(join(tmpdir(), "lightcone-testing-"));
  cpSync(directory, next, { recursive: true });
  const source = join(next, "src/index.ts");
  const text = readFileSync(source, "utf8")
    .replace("tags: t.array(t.string()),\n", "tags: t.array(t.string()),\n    level: t.u32().default(7),\n")
    .replace("{ ...values, id: 0n,", "{ ...values, level: 1, id: 0n,");
  writeFileSync(source, text);
  await database.update(await TestModule.load(next));
  rmSync(next, { recursive: true });
  expect(await database.sql("SELECT level FROM thing")).toEqual([{ level: 7 }]);
});

test("a database is gone when its test is over, and takes a fraction of a second", async () => {
  const database = await things.publish();
  await database.drop();
  await expect(database.sql("SELECT * FROM thing")).rejects.toThrow();
  const started = performance.now();
  for (let i = 0; i < 20; i++) {
    await using another = await bank.publish();
    await another.call("seed", [2, 100n]);
  }
  const each = (performance.now() - started) / 20;
  console.log(`a test with a database of its own: ${each.toFixed(1)} ms`);
  expect(each).toBeLessThan(1000);
});

test("modules and settings that are wrong are told", async () => {
  await expect(TestModule.load("/nowhere")).rejects.toThrow(/no module at \/nowhere \[LC0859\]/);
  const broken = mkdtempSync(join(tmpdir(), "lightcone-testing-"));
  writeFileSync(join(broken, "package.json"), '{ "name": "broken" }');
  await expect(TestModule.load(broken)).rejects.toThrow(/build .* failed:\n.*\[LC0859\]/s);
  rmSync(broken, { recursive: true });
  await expect(TestModule.load(wasm("transfer"), { config: "[network]\nhosts = 5\n" })).rejects.toThrow(
    /did not start:\n.*hosts.*\[LC0859\]/s,
  );
});

test.each(["by itself", "by SIGKILL"])("the server ends with a process that ends %s", async (how) => {
  const script = join(directory, "run.mjs");
  writeFileSync(
    script,
    `import { TestModule } from "lightcone/testing";
const module = await TestModule.load(${JSON.stringify(wasm("transfer"))});
const database = await module.publish();
console.log(database.uri);
${how === "by SIGKILL" ? "setInterval(() => {}, 1000);" : ""}`,
  );
  const temporary = join(directory, "tmp");
  mkdirSync(temporary, { recursive: true });
  const env = { ...process.env, TMPDIR: temporary };
  const child = spawn(process.execPath, [script], {
    cwd: directory,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = await once(child.stdout, "data");
  const uri = String(said).trim();
  const gone = once(child, "exit");
  if (how === "by SIGKILL") child.kill("SIGKILL");
  await gone;
  await until(() =>
    fetch(`${uri}/v1/ping`).then(
      () => false,
      () => true,
    ),
  );
  await until(() => expect(readdirSync(temporary)).toEqual([]));
});
