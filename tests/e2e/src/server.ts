// Starts servers of the build under test and runs its command line, each in a temporary directory of its own.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "lightcone");

/** The `spacetime` under test. */
export const BINARY = findBinary();

function findBinary(): string {
  const candidates = process.env.LIGHTCONE_BIN
    ? [process.env.LIGHTCONE_BIN]
    : [process.env.CARGO_TARGET_DIR, join(cache, "target")]
        .filter((directory) => directory !== undefined)
        .flatMap((directory) => [join(directory, "release/spacetime"), join(directory, "debug/spacetime")]);
  const found = candidates.find((path) => existsSync(path));
  if (!found) throw new Error(`no server to test; looked for ${candidates.join(", ")}; run tests/e2e/run.sh`);
  return found;
}

/** Path of a module built by `make modules`. */
export function wasm(name: "transfer" | "boards" | "coverage" | "procedures" | "rooms" | "views"): string {
  const path = join(process.env.LIGHTCONE_MODULES_WASM_DIR ?? join(cache, "wasm"), `${name}.wasm`);
  if (!existsSync(path)) throw new Error(`${path} is missing; build the modules first: make modules`);
  return path;
}

/** Path of a module bundled by `scripts/js-modules.sh`. */
export function bundle(name: "shop"): string {
  const path = join(process.env.LIGHTCONE_JS_DIR ?? join(cache, "js"), `${name}.js`);
  if (!existsSync(path))
    throw new Error(`${path} is missing; bundle the modules first: scripts/js-modules.sh`);
  return path;
}

/** The same module as another program: one more custom section, which changes nothing but the hash. */
export function patchedWasm(module: string, to: string, note = "patched"): string {
  const name = Buffer.from("e2e");
  const body = Buffer.concat([Buffer.from([name.length]), name, Buffer.from(note)]);
  writeFileSync(to, Buffer.concat([readFileSync(module), Buffer.from([0, body.length]), body]));
  return to;
}

export interface CommandResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

// What must not outlive this process, also when a test ends it early.
const leftovers = new Set<Server | Home>();
process.on("exit", () => {
  for (const leftover of leftovers) leftover.removeNow();
});

/** A command line with a configuration of its own. */
export class Home {
  readonly directory = mkdtempSync(join(tmpdir(), "lightcone-e2e-"));
  readonly #children = new Set<ChildProcess>();

  constructor() {
    leftovers.add(this);
    mkdirSync(join(this.directory, "work"));
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** Starts a command without waiting for it. */
  spawn(...args: string[]): ChildProcess {
    const child = spawn(
      BINARY,
      ["--root-dir", this.directory, "--config-path", this.path("cli.toml"), ...args],
      {
        cwd: this.path("work"),
        env: { ...process.env, NO_COLOR: "1" },
        stdio: ["pipe", "pipe", "pipe"],
      },
    );
    this.#children.add(child);
    child.once("exit", () => this.#children.delete(child));
    return child;
  }

  /** Runs a command to its end, with `input` on its standard input. */
  async runWith(input: string, ...args: string[]): Promise<CommandResult> {
    const child = this.spawn(...args);
    let stdout = "";
    let stderr = "";
    child.stdout!.setEncoding("utf8").on("data", (text) => (stdout += text));
    child.stderr!.setEncoding("utf8").on("data", (text) => (stderr += text));
    child.stdin!.on("error", () => {});
    child.stdin!.end(input);
    const [code] = await once(child, "close");
    return { code, stdout, stderr };
  }

  run(...args: string[]): Promise<CommandResult> {
    return this.runWith("", ...args);
  }

  /** Runs a command that must succeed; returns its output. */
  async ok(...args: string[]): Promise<string> {
    const result = await this.run(...args);
    if (result.code !== 0) {
      throw new Error(
        `spacetime ${args.join(" ")}: exit code ${result.code}\n${result.stdout}${result.stderr}`,
      );
    }
    return result.stdout;
  }

  removeNow(): void {
    for (const child of this.#children) child.kill("SIGKILL");
    // LIGHTCONE_E2E_KEEP=1 leaves data and configuration for a look.
    if (!process.env.LIGHTCONE_E2E_KEEP) rmSync(this.directory, { recursive: true, force: true });
    leftovers.delete(this);
  }
}

/** A running server with a fresh data directory, and the command line of its owner. */
export class Server {
  readonly home = new Home();
  url = "";
  output = "";
  #process: ChildProcess | undefined;

  /** `config` is the text of the server's config.toml. */
  static async start(config = ""): Promise<Server> {
    const server = new Server();
    leftovers.add(server);
    if (config) {
      mkdirSync(server.home.path("data"), { recursive: true });
      writeFileSync(server.home.path("data/config.toml"), config);
    }
    await server.launch();
    await server.home.ok("login", "--server-issued-login", server.url);
    return server;
  }

  get wsUrl(): string {
    return this.url.replace("http:", "ws:");
  }

  get pid(): number {
    return this.#process!.pid!;
  }

  get isRunning(): boolean {
    return (
      this.#process !== undefined && this.#process.exitCode === null && this.#process.signalCode === null
    );
  }

  /** Starts the process without waiting until it listens; for tests that kill it while it recovers. */
  spawnOnly(...options: string[]): ChildProcess {
    this.output = "";
    const child = this.home.spawn("start", "--listen-addr", "127.0.0.1:0", "--non-interactive", ...options);
    child.stdin!.end();
    const collect = (text: string): void => {
      // A test reads the first lines and, when it fails, the last ones.
      this.output = (this.output + text).slice(-100_000);
    };
    child.stdout!.setEncoding("utf8").on("data", collect);
    child.stderr!.setEncoding("utf8").on("data", collect);
    this.#process = child;
    return child;
  }

  /** Starts the process over the data that is there, and waits until it listens. */
  async launch(...options: string[]): Promise<void> {
    const child = this.spawnOnly(...options);
    const deadline = Date.now() + 45_000;
    for (;;) {
      const listening = /Starting SpacetimeDB listening on (\S+)/.exec(this.output);
      if (listening) {
        this.url = `http://${listening[1]}`;
        return;
      }
      if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline) {
        throw new Error(`the server did not start:\n${this.output}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** SIGKILL; returns when the process is gone. */
  async kill(): Promise<void> {
    const child = this.#process!;
    if (!this.isRunning) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  /** SIGTERM; returns the exit code. */
  async terminate(): Promise<number | null> {
    const child = this.#process!;
    if (!this.isRunning) return child.exitCode;
    const gone = once(child, "exit");
    child.kill("SIGTERM");
    const [code] = await gone;
    return code;
  }

  /** Stops the server and removes everything it wrote. */
  async stop(): Promise<void> {
    await this.kill();
    this.removeNow();
  }

  removeNow(): void {
    this.#process?.kill("SIGKILL");
    this.home.removeNow();
    leftovers.delete(this);
  }

  /** A command of the owner's command line on this server. */
  cli(command: string, ...args: string[]): Promise<CommandResult> {
    return this.home.run(command, "--server", this.url, ...args);
  }

  async cliOk(command: string, ...args: string[]): Promise<string> {
    return this.home.ok(command, "--server", this.url, ...args);
  }

  /** Publishes a module; returns the identity of the database. */
  async publish(name: string, module: string, ...options: string[]): Promise<string> {
    const output = await this.cliOk("publish", "--bin-path", module, "--yes", ...options, name);
    const identity = /identity: ([0-9a-f]{64})\s*$/.exec(output);
    if (!identity) throw new Error(`publish did not name the identity:\n${output}`);
    return identity[1]!;
  }

  fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(`${this.url}${path}`, init);
  }

  /** A new identity and its token. */
  async identity(): Promise<{ identity: string; token: string }> {
    const response = await this.fetch("/v1/identity", { method: "POST" });
    if (response.status !== 200) throw new Error(`POST /v1/identity: ${response.status}`);
    return (await response.json()) as { identity: string; token: string };
  }

  /** Token of the owner of what `publish` publishes. */
  ownerToken(): string {
    const token = /spacetimedb_token = "([^"]+)"/.exec(readFileSync(this.home.path("cli.toml"), "utf8"));
    if (!token) throw new Error("cli.toml holds no token");
    return token[1]!;
  }

  /** Rows of a query over HTTP, as the owner. */
  async sql(database: string, query: string): Promise<unknown[][]> {
    const response = await this.fetch(`/v1/database/${database}/sql`, {
      method: "POST",
      body: query,
      headers: { authorization: `Bearer ${this.ownerToken()}` },
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${query}: ${response.status} ${text}`);
    return JSON.parse(text)[0].rows;
  }
}

/** Waits until `condition` holds; the error says what was waited for. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  milliseconds = 15_000,
): Promise<void> {
  const deadline = Date.now() + milliseconds;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited ${milliseconds} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));
