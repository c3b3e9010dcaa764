// A server that keeps its data in memory: one for all tests of a process. It ends with the process, however that ends.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LightconeError, Timestamp } from "../core";
import { ServerKeys, type TestUser } from "./keys";
import { findPrograms, type Programs } from "./program";

/** Which server runs the tests. */
export interface TestServerOptions {
  /** The program `spacetime`, beside which the server is. Default: `LIGHTCONE_BIN`, `@lightcone/cli`, then `PATH`. */
  binary?: string;
  /** The text of the server's `config.toml`. */
  config?: string;
  /**
   * When each database begins. Its clock stands then, and moves by `database.advance` only. Without it, time is the real one.
   */
  time?: Date | Timestamp;
}

/** In microseconds since 1970. */
export function microsOf(time: Date | Timestamp): bigint {
  return (time instanceof Date ? Timestamp.fromDate(time) : time).microsSinceUnixEpoch;
}

/** To whom the databases belong. */
export const OWNER = "owner";

const START_MS_MAX = 60_000;
const OUTPUT_CHARACTERS_MAX = 20_000;

/**
 * Runs the server, and ends it when there is nothing more to read: when the process of the tests closes the pipe, or is gone in
 * whatever way. The shell lets go of the outputs, so that their end is that of the server.
 */
const KEEPER = `directory=$1; shift
"$@" </dev/null & server=$!
exec >/dev/null 2>&1
read -r _
kill -9 $server
wait $server
rm -rf "$directory"`;

/** A running server for tests. */
export class TestServer {
  readonly programs: Programs;
  readonly keys = new ServerKeys();
  readonly #keeper: ChildProcess;
  #output = "";
  #hasEnded = false;
  url = "";

  private constructor(options: TestServerOptions) {
    this.programs = findPrograms(options.binary);
    const directory = mkdtempSync(join(tmpdir(), "lightcone-test-"));
    const at = (name: string): string => join(directory, name);
    mkdirSync(at("data"));
    writeFileSync(at("id_ecdsa"), this.keys.privatePem, { mode: 0o600 });
    writeFileSync(at("id_ecdsa.pub"), this.keys.publicPem);
    if (options.config !== undefined) writeFileSync(at("data/config.toml"), options.config);
    const command = [this.programs.server, "start", "--in-memory", "--non-interactive"];
    command.push("--listen-addr", "127.0.0.1:0", "--data-dir", at("data"));
    command.push("--jwt-priv-key-path", at("id_ecdsa"), "--jwt-pub-key-path", at("id_ecdsa.pub"));
    if (options.time !== undefined) command.push(`--test-time-us=${microsOf(options.time)}`);
    this.#keeper = spawn("/bin/sh", ["-c", KEEPER, "sh", directory, ...command], {
      // Ctrl-C ends the tests; the server follows them.
      detached: true,
      env: { ...process.env, SPACETIMEDB_DISABLE_DISK_LOGGING: "1" },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#listen();
  }

  #listen(): void {
    const { stdin, stdout, stderr } = this.#keeper;
    for (const stream of [stdout!, stderr!]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.#output = (this.#output + text).slice(-OUTPUT_CHARACTERS_MAX);
      });
    }
    stdout!.on("close", () => (this.#hasEnded = true));
    stdin!.on("error", () => {});
    // Tests that are done do not wait for the server.
    this.#keeper.unref();
    for (const stream of [stdin, stdout, stderr]) (stream as unknown as { unref(): void }).unref();
  }

  static async start(options: TestServerOptions): Promise<TestServer> {
    const server = new TestServer(options);
    const end = Date.now() + START_MS_MAX;
    for (;;) {
      const listening = /Starting SpacetimeDB listening on (\S+)/.exec(server.#output);
      if (listening) {
        server.url = `http://${listening[1]}`;
        return server;
      }
      if (server.#hasEnded || Date.now() > end) {
        server.stop();
        throw new LightconeError("LC0859", `the server for tests did not start:\n${server.#output}`);
      }
      await new Promise((done) => setTimeout(done, 2));
    }
  }

  /** A request as a user; an answer that is no success is an error with its text. */
  async request(user: TestUser, method: string, path: string, body?: BodyInit): Promise<Response> {
    const headers = { authorization: `Bearer ${this.keys.token(user)}`, "content-type": "application/json" };
    const response = await fetch(`${this.url}${path}`, { method, headers, body });
    if (!response.ok) throw new RefusedRequest(response.status, await response.text());
    return response;
  }

  stop(): void {
    this.#keeper.stdin!.end();
  }
}

/** What the server says to a request that it does not carry out. */
export class RefusedRequest extends Error {
  constructor(
    readonly status: number,
    text: string,
  ) {
    super(text || `status ${status}`);
  }
}

/** Of the process, also where a runner loads this file anew for each file of tests. */
const SERVERS: unique symbol = Symbol.for("lightcone.testing.servers");
type Servers = Map<string, Promise<TestServer>>;

function servers(): Servers {
  const process = globalThis as { [SERVERS]?: Servers };
  process[SERVERS] ??= new Map();
  return process[SERVERS];
}

/** The server of this process with these options, started at the first call. */
export function sharedServer(options: TestServerOptions): Promise<TestServer> {
  const time = options.time && String(microsOf(options.time));
  const key = JSON.stringify([options.binary ?? process.env.LIGHTCONE_BIN, options.config, time]);
  let server = servers().get(key);
  if (server === undefined) {
    server = TestServer.start(options);
    servers().set(key, server);
    server.catch(() => servers().delete(key));
  }
  return server;
}

/** Stops the servers of this process. They stop with the process anyway. */
export async function stopTestServers(): Promise<void> {
  const running = [...servers().values()];
  servers().clear();
  for (const server of await Promise.allSettled(running)) {
    if (server.status === "fulfilled") server.value.stop();
  }
}
