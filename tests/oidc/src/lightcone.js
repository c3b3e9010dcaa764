// The server and the command line under test.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const BINARY = process.env.LIGHTCONE_BIN;
if (!BINARY) throw new Error("LIGHTCONE_BIN names no `spacetime` to test; run tests/oidc/run.sh");

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Starts a server with these lines in `[auth]`. */
export async function startServer(auth) {
  const directory = mkdtempSync(join(tmpdir(), "lightcone-oidc-"));
  const data = join(directory, "data");
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(data, "config.toml"), `[auth]\n${auth}\n`);
  const port = await freePort();
  const child = spawn(
    join(dirname(BINARY), "spacetimedb-standalone"),
    [
      "start",
      "--non-interactive",
      "--listen-addr",
      `127.0.0.1:${port}`,
      "--data-dir",
      data,
      "--jwt-key-dir",
      directory,
    ],
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
    /** Status and text of a request with a token. */
    async ask(path, token, method = "GET") {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
      });
      return { status: response.status, text: await response.text() };
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
  directory = mkdtempSync(join(tmpdir(), "lightcone-oidc-home-"));
  config = join(this.directory, "cli.toml");

  /** Starts a command; `line` waits for a line of its output that has a text, `end` for its end. */
  run(...args) {
    const child = spawn(BINARY, ["--config-path", this.config, ...args], {
      cwd: this.directory,
      env: { ...process.env, NO_COLOR: "1" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const out = { text: "", errors: "" };
    child.stdout.setEncoding("utf8").on("data", (text) => (out.text += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (out.errors += text));
    const closed = once(child, "close");
    return {
      async line(prefix) {
        for (let attempt = 0; attempt < 300; attempt++) {
          const lines = [out.text, out.errors].flatMap((text) => text.split("\n").slice(0, -1));
          const found = lines.find((line) => line.startsWith(prefix));
          if (found) return found.slice(prefix.length);
          if (child.exitCode !== null) break;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        throw new Error(`no line "${prefix}" in: ${out.text}${out.errors}`);
      },
      async end() {
        const [code] = await closed;
        return { code, out: out.text, errors: out.errors };
      },
    };
  }

  remove() {
    rmSync(this.directory, { recursive: true, force: true });
  }
}
