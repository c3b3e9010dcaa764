// The server and the command line under test.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export const BINARY = process.env.LIGHTCONE_BIN;
const MODULES = process.env.LIGHTCONE_MODULES_WASM_DIR;
if (!BINARY || !MODULES) throw new Error("run tests/mcp/run.sh, which says what is tested");

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Starts a server with this text in its `config.toml`. */
export async function startServer(configuration = "") {
  const directory = mkdtempSync(join(tmpdir(), "lightcone-mcp-"));
  const data = join(directory, "data");
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(data, "config.toml"), configuration);
  const port = await freePort();
  const address = ["--listen-addr", `127.0.0.1:${port}`];
  const child = spawn(
    join(dirname(BINARY), "spacetimedb-standalone"),
    ["start", "--non-interactive", ...address, "--data-dir", data, "--jwt-key-dir", directory],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const url = `http://127.0.0.1:${port}`;
  for (let attempt = 0; ; attempt++) {
    const answer = await fetch(`${url}/v1/ping`).catch(() => undefined);
    if (answer?.ok) break;
    if (attempt > 300 || child.exitCode !== null) throw new Error("the server does not start");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return {
    url,
    /** The token of an identity of its own. */
    async token() {
      const answer = await fetch(`${url}/v1/identity`, { method: "POST" });
      return (await answer.json()).token;
    },
    async stop() {
      child.kill("SIGTERM");
      if (child.exitCode === null) await once(child, "exit");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A command line with a configuration of its own. */
export class Home {
  directory = mkdtempSync(join(tmpdir(), "lightcone-mcp-home-"));
  config = join(this.directory, "cli.toml");

  run(...args) {
    return execFileSync(BINARY, ["--config-path", this.config, ...args], {
      cwd: this.directory,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
    });
  }

  /** Logs in at a server and publishes the bank there. */
  publish(url, database) {
    this.run("login", "--server-issued-login", url);
    this.run("publish", "-b", join(MODULES, "transfer.wasm"), database, "-s", url);
    const shown = this.run("login", "show", "--token", "--server", url);
    return /Your auth token \(don't share this!\) is (\S+)/.exec(shown)[1];
  }

  remove() {
    rmSync(this.directory, { recursive: true, force: true });
  }
}
