// nginx and Caddy with the configurations of the guide, on ports and with a certificate of a test.

import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

/** Whether a program is installed. */
export const isInstalled = (program: string): boolean =>
  spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;

/** A certificate for a name, and its key; the paths of both. */
export function certificate(directory: string, name: string): { cert: string; key: string } {
  mkdirSync(directory, { recursive: true });
  const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  const args = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", `/CN=${name}`];
  execFileSync("openssl", [...args, "-addext", `subjectAltName=DNS:${name}`, "-keyout", key, "-out", cert], {
    stdio: "ignore",
  });
  return { cert, key };
}

/** A port that is free now. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** A proxy that runs until it is stopped. */
export function startNginx(directory: string, site: string): ChildProcess {
  const file = join(directory, "nginx.conf");
  const places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const temporary = places.map((name) => `${name}_temp_path ${join(directory, name)};`).join("\n");
  writeFileSync(
    file,
    `daemon off;\npid ${join(directory, "pid")};\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${site}}\n`,
  );
  return spawn("nginx", ["-p", directory, "-c", file], { stdio: "inherit" });
}

export function startCaddy(directory: string, site: string): ChildProcess {
  const file = join(directory, "Caddyfile");
  writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${site}`);
  const env = { ...process.env, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory };
  return spawn("caddy", ["run", "--config", file, "--adapter", "caddyfile"], { env, stdio: "ignore" });
}
