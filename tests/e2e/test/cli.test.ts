// The command line against a real server: output, questions, exit codes.

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RawClient } from "../src/raw-client";
import { Home, patchedWasm, Server, until, wasm } from "../src/server";
import { Writer } from "../src/wire";

let server: Server;
let identity: string;

beforeAll(async () => {
  server = await Server.start();
  identity = await server.publish("bank", wasm("transfer"));
  await server.cliOk("call", "bank", "seed", "3", "100");
});
afterAll(() => server?.stop());

describe("publish", () => {
  test("creates", async () => {
    const output = await server.cliOk("publish", "--bin-path", wasm("transfer"), "-y", "fresh");
    expect(output).toMatch(/Created new database with name: fresh, identity: [0-9a-f]{64}\s*$/);
  });

  test("without a name gives an identity", async () => {
    const output = await server.cliOk("publish", "--bin-path", wasm("transfer"), "-y");
    expect(output).toMatch(/Created new database with identity: [0-9a-f]{64}\s*$/);
  });

  test("the same program again is an update without a change", async () => {
    expect(await server.publish("bank", wasm("transfer"))).toBe(identity);
    expect(await server.sql("bank", "SELECT * FROM accounts")).toHaveLength(3);
  });

  test("another program with the same schema is swapped in; clients stay", async () => {
    const client = await RawClient.connect(server.url, "bank");
    await client.subscribe(1, "SELECT * FROM accounts WHERE id = 1");
    for (const note of ["one", "two"]) {
      const program = patchedWasm(wasm("transfer"), server.home.path(`${note}.wasm`), note);
      expect(await server.publish("bank", program)).toBe(identity);
      const outcome = await client.call("transfer", new Writer().u32(1).u32(2).i64(1n).done());
      expect(outcome).toMatchObject({ kind: "Ok", querySets: [{ querySet: 1 }] });
    }
    await client.close();
  });

  test("a table with rows is not removed, and the plan is shown", async () => {
    const result = await server.cli("publish", "--bin-path", wasm("coverage"), "-y", "bank");
    expect(result.code).toBe(1);
    const output = result.stdout + result.stderr;
    expect(output).toContain("accounts");
    expect(output).toMatch(/every_number/);
    expect(await server.sql("bank", "SELECT * FROM accounts")).toHaveLength(3);
  });

  test("--delete-data asks, and starts afresh", async () => {
    await server.publish("wiped", wasm("transfer"));
    await server.cliOk("call", "wiped", "seed", "5", "1");
    const args = [
      "publish",
      "--server",
      server.url,
      "--bin-path",
      wasm("transfer"),
      "--delete-data",
      "wiped",
    ];
    const refused = await server.home.runWith("n\n", ...args);
    expect(refused.code, "what was declined has not succeeded").toBe(1);
    expect(refused.stderr).toContain(
      "This will DESTROY the current wiped module, and ALL corresponding data.",
    );
    expect(refused.stderr).toContain("[deleting wiped] [y/N]");
    expect(await server.sql("wiped", "SELECT * FROM accounts")).toHaveLength(5);

    const client = await RawClient.connect(server.url, "wiped");
    const agreed = await server.home.runWith("y\n", ...args);
    expect(agreed.code, agreed.stderr).toBe(0);
    expect(await client.closed).toEqual({ code: 1001, reason: "module exited" });
    expect(await server.sql("wiped", "SELECT * FROM accounts")).toHaveLength(0);
    await server.publish("wiped", wasm("coverage"), "--delete-data=on-conflict");
    await server.cliOk("call", "wiped", "check_numbers");
  });

  test("a name of another owner is refused", async () => {
    const other = new Home();
    try {
      await other.ok("login", "--server-issued-login", server.url);
      const result = await other.run(
        "publish",
        "--server",
        server.url,
        "--bin-path",
        wasm("transfer"),
        "-y",
        "bank",
      );
      expect(result.code).toBe(1);
      for (const command of [
        ["delete", "bank", "-y"],
        ["logs", "bank"],
        ["lock", "bank"],
        ["rename", "--to", "mine", identity, "-y"],
      ]) {
        const refused = await other.run(...command, "--server", server.url);
        expect(refused.code, command.join(" ")).toBe(1);
        expect(refused.stderr).toMatch(/^Error: /m);
      }
    } finally {
      other.removeNow();
    }
  });

  test.each([
    ["a file that is not there", ["--bin-path", "/nowhere.wasm", "-y", "x1"], 1],
    ["a bad name", ["--bin-path", "WASM", "-y", "Bad_Name"], 1],
    ["an unknown flag", ["--no-such-flag"], 2],
  ])("%s", async (_, args, code) => {
    const result = await server.cli(
      "publish",
      ...args.map((arg) => (arg === "WASM" ? wasm("transfer") : arg)),
    );
    expect(result.code).toBe(code);
    expect(result.stderr.length).toBeGreaterThan(10);
  });
});

describe("call and sql", () => {
  test("call", async () => {
    const done = await server.cli("call", "bank", "transfer", "0", "1", "5");
    expect(done).toMatchObject({ code: 0, stdout: "" });
    expect(done.stderr).toBe("");
    const refused = await server.cli("call", "bank", "transfer", "0", "1", "99999");
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("insufficient_funds");
    const unknown = await server.cli("call", "bank", "transfers");
    expect(unknown.code).toBe(1);
    expect(unknown.stderr).toContain(
      `No such reducer OR procedure \`transfers\` for database \`bank\` resolving to identity \`${identity}\`.`,
    );
    expect(unknown.stderr).toContain("transfer");
    const wrong = await server.cli("call", "bank", "transfer", "0", "one", "5");
    expect(wrong.code).toBe(1);
    const few = await server.cli("call", "bank", "transfer", "0");
    expect(few.code).toBe(1);
    expect(few.stderr).toContain("amount");
  });

  test("every kind of argument", async () => {
    await server.publish("all", wasm("coverage"));
    const me = await server.identity();
    await server.cliOk(
      "call",
      "all",
      "echo_arguments",
      "true",
      "-5",
      "340282366920938463463374607431768211455",
      "free text",
      "[1,2]",
      '{"x":1,"y":2}',
      '{"blue":[]}',
      '{"label":"l"}',
      '{"none":[]}',
      me.identity,
      '{"__timestamp_micros_since_unix_epoch__":1}',
    );
    const logs = await server.cliOk("logs", "all", "-n", "1");
    expect(logs).toContain(
      `true -5 340282366920938463463374607431768211455 free text [1, 2] Point { x: 1, y: 2 } Blue Label("l") None ${me.identity}`,
    );
  });

  test("sql as text and as JSON", async () => {
    await server.cliOk("call", "bank", "seed", "2", "7");
    const text = await server.cliOk("sql", "bank", "SELECT * FROM accounts WHERE id = 1");
    expect(text).toBe(" id | balance \n----+---------\n 1  | 7       \n");
    const json = JSON.parse(await server.cliOk("sql", "bank", "--format", "json", "SELECT * FROM accounts"));
    expect(json[0].rows.sort()).toEqual([
      [0, 7],
      [1, 7],
    ]);
    expect(json[0].schema.elements.map((e: { name: { some: string } }) => e.name.some)).toEqual([
      "id",
      "balance",
    ]);
    const count = JSON.parse(
      await server.cliOk("sql", "bank", "--format", "json", "SELECT COUNT(*) AS n FROM accounts"),
    );
    expect(count[0].rows).toEqual([[2]]);
    const limited = JSON.parse(
      await server.cliOk("sql", "bank", "--format", "json", "SELECT * FROM accounts LIMIT 1"),
    );
    expect(limited[0].rows).toHaveLength(1);
    const wrong = await server.cli("sql", "bank", "SELEKT");
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toMatch(/^Error: /m);
    expect((await server.cli("sql", "bank", "SELECT * FROM nothing")).stderr).toContain(
      "no such table: `nothing`",
    );
  });
});

describe("logs, describe, subscribe", () => {
  test("logs -n and --format json", async () => {
    await server.cliOk("call", "bank", "seed", "2", "8");
    const text = await server.cliOk("logs", "bank", "-n", "1");
    expect(text).toMatch(
      /^\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00) {2}INFO: seed src\/lib\.rs:\d+: seeded 2 accounts with a balance of 8 each\n$/,
    );
    const json = JSON.parse(await server.cliOk("logs", "bank", "-n", "1", "--format", "json"));
    expect(json).toMatchObject({ level: "Info", message: "seeded 2 accounts with a balance of 8 each" });
    expect((await server.cliOk("logs", "bank", "-n", "50", "--level", "panic")).trim()).toBe("");
  });

  test("logs -f prints what comes", async () => {
    const child = server.home.spawn("logs", "bank", "--server", server.url, "-f", "-n", "0");
    let output = "";
    child.stdout!.setEncoding("utf8").on("data", (part) => (output += part));
    let n = 10;
    await until("a new line", async () => {
      await server.cliOk("call", "bank", "seed", "2", String(n++));
      return output.includes("seeded 2 accounts");
    });
    // It stays open across an update of the module.
    await server.publish("bank", patchedWasm(wasm("transfer"), server.home.path("logs.wasm"), "logs"));
    await server.cliOk("call", "bank", "seed", "2", "777");
    await until("the line after the update", () => output.includes("balance of 777"));
    expect(child.exitCode).toBeNull();
    child.kill("SIGKILL");
  });

  test("describe --json", async () => {
    const whole = JSON.parse(await server.cliOk("describe", "--json", "bank"));
    expect(JSON.stringify(whole)).toContain("accounts");
    const reducer = await server.cliOk("describe", "--json", "bank", "reducer", "transfer");
    expect(JSON.stringify(JSON.parse(reducer))).toContain("amount");
    const table = await server.cliOk("describe", "--json", "bank", "table", "accounts");
    expect(JSON.stringify(JSON.parse(table))).toContain("accounts");
    expect((await server.cli("describe", "--json", "bank", "table", "nothing")).code).toBe(1);
    expect((await server.cli("describe", "bank")).code).toBe(2);
  });

  test("subscribe -n", async () => {
    await server.cliOk("call", "bank", "seed", "2", "10");
    const child = server.home.spawn(
      "subscribe",
      "--server",
      server.url,
      "bank",
      "SELECT * FROM accounts WHERE id = 1",
      "-n",
      "1",
      "--print-initial-update",
      "-t",
      "25",
    );
    let output = "";
    child.stdout!.setEncoding("utf8").on("data", (part) => (output += part));
    await until("the initial rows", () => output.includes("\n"));
    await server.cliOk("call", "bank", "transfer", "0", "1", "1");
    await until("it ends", () => child.exitCode !== null);
    expect(child.exitCode).toBe(0);
    expect(
      output
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { accounts: { deletes: [], inserts: [{ id: 1, balance: 10 }] } },
      { accounts: { deletes: [{ id: 1, balance: 10 }], inserts: [{ id: 1, balance: 11 }] } },
    ]);
    const late = await server.cli("subscribe", "bank", "SELECT * FROM accounts", "-n", "1", "-t", "1");
    expect(late.code).toBe(1);
    expect(late.stderr).toContain("subscription timed out after 1s after receiving 0/1 updates");
    expect((await server.cli("subscribe", "bank", "SELECT * FROM nothing")).stderr).toContain(
      "encountered error in initial subscribe: ",
    );
  });
});

describe("names and owners", () => {
  test("list, rename, lock, unlock, delete", async () => {
    const id = await server.publish("short-lived", wasm("transfer"));
    const list = await server.cliOk("list");
    expect(list).toMatch(/Associated databases for user [0-9a-f]{64}:/);
    expect(list).toContain("short-lived");
    expect(list).toContain(id);
    expect(await server.cliOk("rename", "--to", "renamed", id)).toContain(
      `Name set to renamed for identity ${id}.`,
    );
    expect((await server.cli("rename", "--to", "bank", id)).code).toBe(1);
    expect(await server.cliOk("lock", "renamed")).toContain(
      `Database ${id} is now locked. It cannot be deleted until unlocked.`,
    );
    const locked = await server.cli("delete", "renamed", "-y");
    expect(locked.code).toBe(1);
    expect(locked.stderr).toContain("unlock");
    await server.cliOk("unlock", "renamed");

    const client = await RawClient.connect(server.url, "renamed");
    const declined = await server.home.runWith("no\n", "delete", "--server", server.url, "renamed");
    expect(declined.code).toBe(0);
    expect(declined.stderr).toContain(
      `Are you sure you want to delete database renamed (${id})? This action cannot be undone. [y/N]`,
    );
    expect(declined.stderr).toContain("Aborting");
    await server.cliOk("delete", "renamed", "-y");
    expect(await client.closed).toEqual({ code: 1001, reason: "module exited" });
    const gone = await server.cli("sql", "renamed", "SELECT * FROM accounts");
    expect(gone.code).toBe(1);
    // The name stays with its owner; what it named is gone.
    expect(gone.stderr).toContain("No such database.");
    const never = await server.cli("sql", "never-was", "SELECT * FROM accounts");
    expect(never.code).toBe(1);
    expect(never.stderr).toContain("failed to find database `never-was`.");
  });

  test("login, login show, logout", async () => {
    const home = new Home();
    try {
      expect(await home.ok("login", "show")).toContain("You are not logged in.");
      const login = await home.ok("login", "--server-issued-login", server.url);
      const me = /Logged in with identity ([0-9a-f]{64})/.exec(login)?.[1];
      expect(me).toBeDefined();
      expect(await home.ok("login", "show")).toContain(`You are logged in as ${me}`);
      const token = /[\w-]+\.[\w-]+\.[\w-]+/.exec(await home.ok("login", "show", "--token"))?.[0];
      expect(readFileSync(home.path("cli.toml"), "utf8")).toContain(token);
      expect(await home.ok("logout", "--auth-host", server.url)).toContain(`Logged out (identity ${me}).`);
      expect(await home.ok("logout", "--auth-host", server.url)).toContain("You are not logged in.");
      expect(await home.ok("login", "--token", token!)).toContain(`Logged in with identity ${me}`);
    } finally {
      home.removeNow();
    }
  });

  test("a command that needs a login logs in with the server when there is no terminal", async () => {
    const home = new Home();
    try {
      const published = await home.run(
        "publish",
        "--server",
        server.url,
        "--bin-path",
        wasm("transfer"),
        "-y",
        "by-a-newcomer",
      );
      expect(published.code, published.stderr).toBe(0);
      expect(published.stderr).toContain("We have logged in directly to your target server.");
      expect(published.stdout).toMatch(
        /^Created new database with name: by-a-newcomer, identity: [0-9a-f]{64}\n$/,
      );
    } finally {
      home.removeNow();
    }
  });
});

describe("server and version", () => {
  test("ping", async () => {
    expect(await server.home.ok("server", "ping", server.url)).toContain(`Server is online: ${server.url}`);
    const dead = await server.home.run("server", "ping", "http://127.0.0.1:1");
    expect(dead.code).toBe(1);
    expect(dead.stderr).toMatch(/^Error: /m);
  });

  test("list, add, set-default, remove", async () => {
    const home = new Home();
    try {
      expect(await home.ok("server", "list")).toMatch(/HOSTNAME\s.*PROTOCOL\s.*NICKNAME/);
      await home.ok("server", "add", "--url", server.url, "here", "--default");
      expect(await home.ok("server", "list")).toMatch(/\*\*\*\s.*here/);
      await home.ok("server", "ping", "here");
      expect((await home.run("server", "set-default", "nowhere")).code).toBe(1);
      await home.ok("server", "remove", "here");
      expect((await home.run("server", "ping", "here")).stderr).toContain(
        "No such saved server configuration: here",
      );
    } finally {
      home.removeNow();
    }
  });

  test("versions, help, exit codes", async () => {
    const home = new Home();
    try {
      expect(await home.ok("--version")).toMatch(
        /spacetimedb tool version \S+; spacetimedb-lib version \S+;/,
      );
      expect((await home.run()).code).toBe(2);
      expect((await home.run("no-such-command")).code).toBe(2);
      const help = await home.run("help");
      expect(help.code).toBe(0);
      for (const command of [
        "publish",
        "delete",
        "logs",
        "call",
        "describe",
        "sql",
        "rename",
        "list",
        "login",
        "logout",
        "build",
        "server",
        "subscribe",
        "start",
        "version",
      ]) {
        expect(help.stdout).toContain(command);
      }
      const unreachable = await home.run(
        "publish",
        "--server",
        "http://127.0.0.1:1",
        "--bin-path",
        wasm("transfer"),
        "-y",
        "x2",
      );
      expect(unreachable.code).toBe(1);
      expect(unreachable.stderr).toMatch(/^Error: /m);
    } finally {
      home.removeNow();
    }
  });

  test("a second server on the same data is refused", async () => {
    const second = await server.home.run("start", "--listen-addr", "127.0.0.1:0", "--non-interactive");
    expect(second.code).toBe(1);
    expect(second.stdout + second.stderr).toContain(
      `spacetime.pid already exists (owned by pid ${server.pid})`,
    );
  });

  test("a port in use is refused", async () => {
    const home = new Home();
    try {
      const second = await home.run("start", "--listen-addr", new URL(server.url).host, "--non-interactive");
      expect(second.code).toBe(1);
      expect(second.stdout + second.stderr).toContain("in use");
    } finally {
      home.removeNow();
    }
  });
});
