// Modules on a real server: one that uses everything, and the transfer module, with this package and with the published one.

import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Server } from "../../../tests/e2e/src/server";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../../..");
const ours = join(root, "sdk-ts/src/server/index.ts");

let server: Server;

beforeAll(async () => {
  server = await Server.start();
});
afterAll(() => server?.stop());

async function bundle(entry: string, name: string, sdk: "lightcone" | "npm"): Promise<string> {
  const result = await build({
    stdin: {
      contents: await readFile(entry, "utf8"),
      loader: "ts",
      resolveDir: here,
      sourcefile: "src/index.ts",
    },
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    platform: "browser",
    external: ["spacetime:sys*"],
    sourcemap: "inline",
    alias:
      sdk === "lightcone"
        ? {
            "spacetimedb/server": ours,
            "lightcone/server": ours,
            spacetimedb: join(root, "sdk-ts/src/client/index.ts"),
          }
        : {},
  });
  const path = server.home.path(`${name}-${sdk}.js`);
  writeFileSync(path, result.outputFiles![0]!.text);
  return path;
}

async function call(database: string, reducer: string, ...args: unknown[]): Promise<string> {
  const result = await server.home.run(
    "call",
    "--server",
    server.url,
    database,
    reducer,
    ...args.map((arg) => JSON.stringify(arg)),
  );
  return result.code === 0 ? "" : result.stderr.trim().split("\n").at(-1)!;
}

const sql = (database: string, query: string) =>
  server.home.ok("sql", "--server", server.url, database, query);

/** The messages in the log, without times. */
async function messages(database: string): Promise<string[]> {
  const text = await server.home.ok("logs", "--server", server.url, "-n", "1000", database);
  return text
    .trim()
    .split("\n")
    .map((line) => line.replace(/^\S+\s+/, "").replace(/\s*\d+(\.\d+)?\s*[mµn]?s\b/, " <time>"))
    .map((line) => line.replace(/spacetimedb_module:\d+/, "spacetimedb_module:<line>"));
}

describe("a module that uses everything", () => {
  const runs = new Map<string, Record<string, unknown>>();

  test.each(["npm", "lightcone"] as const)("with %s", async (sdk) => {
    const database = `coverage-${sdk}`;
    const program = await bundle(join(here, "coverage_module.ts"), "coverage", sdk);
    await server.home.ok("publish", "--server", server.url, "-y", "--js-path", program, database);
    const answers = {
      values: await call(database, "values", "héllo", { circle: 2.5 }),
      more: await call(database, "values", "odd", { box: { w: 3, h: 4 } }),
      fill: await call(database, "fill"),
      unique: await call(database, "unique"),
      refuse: await call(database, "refuse"),
      crash: (await call(database, "crash")).replace(/\(.*/, ""),
      many: await call(database, "many", 5000),
      context: await call(database, "context"),
      logs: await call(database, "logs"),
      rows: await sql(
        database,
        "SELECT id, p, b, c, h, i, o, q, r, s, shape, level, box, span FROM everything",
      ),
      items: await sql(database, "SELECT * FROM item"),
      counters: await sql(database, "SELECT * FROM counters WHERE name = 'once'"),
      none: await sql(database, "SELECT * FROM counters WHERE name = 'never'"),
      init: await sql(database, "SELECT * FROM counters WHERE name = 'init'"),
      forget: await call(database, "forget"),
    };
    const log = await messages(database);
    runs.set(sdk, { ...answers, log: log.filter((line) => !/Uncaught|^\s*at |connected/.test(line)) });

    expect(answers).toMatchObject({
      values: "",
      more: "",
      fill: "",
      unique: "",
      many: "",
      context: "",
      logs: "",
    });
    expect(answers.refuse).toContain("not today");
    expect(answers.crash).toContain("fatal error");
    expect(answers.counters).toContain("once");
    expect(answers.none).not.toContain("never");
    expect(answers.init).toContain("init");
    const text = log.join("\n");
    expect(text).toContain("count 6n [ 1, 2, 3, 4, 5, 6 ] [ 1, 2, 3, 4, 5, 6 ]");
    expect(text).toContain("prefix [ 2, 3 ] [ 3 ] [ 3 ] [ 4, 5, 6 ]");
    expect(text).toContain("left [ 5 ] 1n");
    expect(text).toContain("true UniqueAlreadyExists");
    expect(text).toContain("sum 12497504n 5002n");
    expect(text).toContain("cleared 5002n 0n");
    expect(text).toMatch(/Uncaught TypeError/);
    expect(text).toMatch(/src\/index\.ts/);
  });

  test("answers and logs are the same with both", () => {
    expect(runs.get("lightcone")).toEqual(runs.get("npm"));
  });
});

describe("the transfer module", () => {
  test.each([
    ["npm", "transfer-ts-npm"],
    ["lightcone", "transfer-ts"],
  ] as const)("with %s", async (sdk, module) => {
    const database = module;
    const program = await bundle(join(root, "modules", module, "src/index.ts"), module, sdk);
    await server.home.ok("publish", "--server", server.url, "-y", "--js-path", program, database);
    expect(await call(database, "seed", 10, 1000)).toBe("");
    expect(await call(database, "transfer", 3, 4, 50)).toBe("");
    expect(await call(database, "transfer", 3, 3, 50)).toContain("same_account");
    expect(await call(database, "transfer", 3, 4, 0)).toContain("non_positive_amount");
    expect(await call(database, "transfer", 3, 99, 1)).toContain("account_missing");
    expect(await call(database, "transfer", 3, 4, 951)).toContain("insufficient_funds");
    expect(await sql(database, "SELECT * FROM accounts WHERE id = 3")).toMatch(/3\s+\|\s+950/);
    expect(await sql(database, "SELECT * FROM accounts WHERE id = 4")).toMatch(/4\s+\|\s+1050/);
    expect(await call(database, "seed", 3, 7)).toBe("");
    expect((await sql(database, "SELECT * FROM accounts")).match(/\| 7/g)).toHaveLength(3);
  });
});

describe("modules/coverage-ts, which checks everything itself", () => {
  test.each(["npm", "lightcone"] as const)("with %s", async (sdk) => {
    const database = `checks-${sdk}`;
    const program = await bundle(join(root, "modules/coverage-ts/src/index.ts"), "checks", sdk);
    await server.home.ok("publish", "--server", server.url, "-y", "--js-path", program, database);
    for (const reducer of [
      "store_values",
      "indexes",
      "iterators",
      "sequences",
      "host_errors",
      "context",
      "logging",
    ]) {
      expect([reducer, await call(database, reducer)]).toEqual([reducer, ""]);
    }
    expect(await call(database, "user_error", "refused")).toContain("refused");
    for (const reducer of ["crash", "recurse_forever"]) {
      expect(await call(database, reducer)).toContain("fatal error");
    }
    expect(await call(database, "still_works")).toBe("");
  });
});
