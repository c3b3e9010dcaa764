// Servers with the SpacetimeDB interface: this repository's, built and started here, or one that runs already.

import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { httpUrl, normalizeStdbUrl } from "../config";
import type { PrepareContext, Started } from "../connectors/definition";
import { foundAt } from "./addresses";
import { packageDirectory, prepareScriptCommand, runCommand } from "./commands";
import type { Program } from "./processes";

/** Its `url` is `host:port`. */
export interface StdbServer extends Started {
  isOurs: boolean;
  software: Record<string, string>;
}

/** Where a server is looked for, and where `prep` starts one. */
export const defaultAddress = "127.0.0.1:3000";
const pingMilliseconds = 2000;

/** Whether a server answers at this address. */
export async function pings(address: string): Promise<boolean> {
  try {
    const response = await fetch(`${httpUrl(address)}/v1/ping`, {
      signal: AbortSignal.timeout(pingMilliseconds),
    });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

let programs: Promise<string> | undefined;

/** The directory of `spacetime` and `spacetimedb-standalone`; builds them once per invocation. */
export function builtPrograms(say: (line: string) => void): Promise<string> {
  programs ??= (async () => {
    const built = process.env["LIGHTCONE_BIN"];
    say(
      built
        ? `using the programs beside ${built}`
        : "building the server (release): the first time takes minutes",
    );
    return (await prepareScriptCommand("server")).trim();
  })();
  return programs;
}

/** A server that was found running. */
export function foundServer(url: string): StdbServer {
  const { host } = normalizeStdbUrl(url);
  return { ...foundAt(`ws://${host}`), url, isOurs: false, software: { server: `found at ${host}` } };
}

/** Starts this repository's server on a free port, with fresh data. */
export async function startServer(context: PrepareContext): Promise<StdbServer> {
  const { say, processes, workDirectory } = context;
  const directory = context.programs ?? (await builtPrograms(say));
  const program = join(directory, "spacetimedb-standalone");
  const data = join(workDirectory, `server-${Date.now()}`);
  mkdirSync(join(data, "keys"), { recursive: true });
  const start = (listen: string): Promise<Program> =>
    processes.start({
      name: "the server",
      command: program,
      args: [
        ...["start", "--non-interactive", "--listen-addr", listen],
        ...["--data-dir", join(data, "data"), "--jwt-key-dir", join(data, "keys")],
      ],
      logFile: join(data, "server.log"),
      readyWhen: /Starting SpacetimeDB listening on ([0-9.:]+)/,
    });
  say(`starting the server on ${context.asService ? defaultAddress : "a free port"}, with fresh data`);
  let running = await start(context.asService ? defaultAddress : "127.0.0.1:0");
  const url = running.ready;
  // Among lines about the interface and the place of the program.
  const lines = (await runCommand(join(directory, "spacetime"), ["--version"])).split("\n");
  const version = lines.find((line) => line.startsWith("lightcone version")) ?? "lightcone";
  return {
    url,
    processes: () => [running.pid],
    dataDirectory: join(data, "data"),
    isOurs: true,
    software: { server: version },
    crash: async () => {
      await running.kill();
      running = await start(url);
    },
    stop: async () => {
      await running.stop();
      rmSync(data, { recursive: true, force: true });
    },
  };
}

export interface Module {
  /** Directory of the module, as `--stdb-module-path` has it: relative to the package. */
  path: string;
  database: string;
}

/** Whether the server has a database of this name. */
export async function hasDatabase(address: string, database: string): Promise<boolean> {
  const response = await fetch(`${httpUrl(address)}/v1/database/${encodeURIComponent(database)}`);
  await response.arrayBuffer();
  return response.ok;
}

/** Publishes a module as a new database, or over the old one with its data deleted. */
export async function publishModule(context: PrepareContext, address: string, module: Module): Promise<void> {
  const { say, workDirectory } = context;
  const path = resolve(packageDirectory, module.path);
  if (!existsSync(path)) throw new Error(`the module ${path} is not there; --stdb-module-path names it`);
  const cli = join(context.programs ?? (await builtPrograms(say)), "spacetime");
  const url = httpUrl(address);
  // A configuration of its own: the login of the account stays as it is.
  const spacetime = (...args: string[]) => [cli, "--config-path", join(workDirectory, "cli.toml"), ...args];
  const run = ([command, ...args]: string[]) => runCommand(command!, args);
  say(`building and publishing ${module.path} as ${module.database}`);
  await prepareScriptCommand("module", path);
  await run(spacetime("login", "--server-issued-login", url));
  const publish = [
    ...["publish", "--delete-data", "--yes", "--server", url],
    ...["--module-path", path, module.database],
  ];
  if (existsSync(join(path, "Cargo.toml"))) await prepareScriptCommand("wasm", ...spacetime(...publish));
  else await run(spacetime(...publish));
}
