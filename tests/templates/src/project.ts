// A project made from a template, and what its developer would do with it.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { BINARY, type Server } from "../../e2e/src/server";

const keptProcesses = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of keptProcesses) stopGroup(child);
});

function stopGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has just ended by itself.
  }
}

export interface Running {
  output(): string;
  /** Resolves when the output contains the text. */
  says(text: string | RegExp, withinMs?: number): Promise<void>;
  type(line: string): void;
  stop(): void;
  /** Asks it to end, with what it has started itself, and waits for that. */
  end(): Promise<void>;
}

export class Project {
  private constructor(
    readonly server: Server,
    readonly directory: string,
    readonly database: string,
  ) {}

  /** `spacetime init`. */
  static async init(
    server: Server,
    template: string,
    name = `t-${template}`,
    sdk?: string,
  ): Promise<Project> {
    await server.home
      .ok("server", "add", "--url", server.url, "--default", "--no-fingerprint", "here")
      .catch(() => "");
    await server.home.ok(
      "init",
      name,
      "--template",
      template,
      "--non-interactive",
      "--npm-sdk",
      sdk ?? process.env.LIGHTCONE_NPM_SDK!,
    );
    const directory = server.home.path(`work/${name}`);
    return new Project(server, directory, `${name}-db`);
  }

  /** The same with the packages installed, also those of the module, which are looked for above it. */
  static async create(...args: Parameters<typeof Project.init>): Promise<Project> {
    const project = await Project.init(...args);
    const directory = ["", "spacetimedb"].find((name) => existsSync(project.path(`${name}/package.json`)));
    if (directory !== undefined) {
      await project.shell(`npm install --no-audit --no-fund --prefer-offline --prefix ./${directory}`);
    }
    return project;
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  environment(): NodeJS.ProcessEnv {
    const settings: Record<string, string> = {};
    for (const prefix of ["", "VITE_"]) {
      settings[`${prefix}SPACETIMEDB_HOST`] = this.server.url;
      settings[`${prefix}SPACETIMEDB_DB_NAME`] = this.database;
    }
    return { ...process.env, ...settings };
  }

  /** Runs a command in the project that must succeed. */
  async shell(command: string): Promise<string> {
    const child = spawn("sh", ["-c", command], { cwd: this.directory, env: this.environment() });
    let output = "";
    child.stdout.on("data", (text) => (output += text));
    child.stderr.on("data", (text) => (output += text));
    const [code] = await once(child, "close");
    if (code !== 0) throw new Error(`${command}: exit code ${code}\n${output}`);
    return output;
  }

  /** The command line, about this project's database. */
  publish(...more: string[]): Promise<string> {
    return this.server.home.ok(
      "publish",
      "--no-config",
      "--server",
      this.server.url,
      "--yes",
      "--module-path",
      this.path("spacetimedb"),
      ...more,
      this.database,
    );
  }

  generate(language: "typescript" | "rust"): Promise<string> {
    return this.server.home.ok(
      "generate",
      "--no-config",
      "--lang",
      language,
      "--module-path",
      this.path("spacetimedb"),
      "--out-dir",
      this.path("src/module_bindings"),
    );
  }

  sql(query: string): Promise<string> {
    return this.server.home.ok("sql", "--no-config", "--server", this.server.url, this.database, query);
  }

  /** `spacetime dev`. */
  dev(...more: string[]): Running {
    const home = [
      "--root-dir",
      this.server.home.directory,
      "--config-path",
      this.server.home.path("cli.toml"),
    ];
    const args = ["dev", "--yes", "--server", this.server.url, ...more];
    // By what the runner sets, Bun would read no .env.local, and Nuxt would say nothing.
    const runner = { NODE_ENV: undefined, TEST: undefined, VITEST: undefined };
    const quiet = { NO_COLOR: "1", NEXT_TELEMETRY_DISABLED: "1", ASTRO_TELEMETRY_DISABLED: "1" };
    const env = { ...process.env, ...runner, ...quiet, npm_config_prefer_offline: "true" };
    return running(spawn(BINARY, [...home, ...args], { cwd: this.directory, env, detached: true }));
  }

  /** Starts a command that goes on running. */
  start(command: string): Running {
    const child = spawn("sh", ["-c", command], {
      cwd: this.directory,
      env: this.environment(),
      detached: true,
    });
    return running(child);
  }
}

function running(child: ChildProcess): Running {
  keptProcesses.add(child);
  let printed = "";
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding("utf8").on("data", (text) => (printed += text));
  }
  // Many tools colour their output where `CI` is set, terminal or not.
  const output = () => stripVTControlCharacters(printed);
  return {
    output,
    type: (line) => void child.stdin!.write(`${line}\n`),
    stop: () => stopGroup(child),
    async end() {
      if (child.exitCode === null && child.kill("SIGTERM")) await once(child, "exit");
    },
    async says(text, withinMs = 60_000) {
      const end = Date.now() + withinMs;
      while (!(typeof text === "string" ? output().includes(text) : text.test(output()))) {
        if (Date.now() > end) throw new Error(`waited for ${text} in:\n${output()}`);
        if (child.exitCode !== null)
          throw new Error(`ended with ${child.exitCode} before ${text}:\n${output()}`);
        await new Promise((done) => setTimeout(done, 20));
      }
    },
  };
}
