// The last chapter of the guide: its settings, and its configurations of nginx and Caddy in front of a server.

import type { ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { Server, until } from "../../e2e/src/server";
import { type PageFile, stepsOf } from "../src/guide";
import { certificate, freePort, isInstalled, startCaddy, startNginx } from "../src/proxies";

const HOST = "tasks.example.com";
const files = new Map(
  stepsOf("11-deploying.md")
    .filter((step): step is PageFile => "path" in step)
    .map(({ path, text }) => [path, text]),
);

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

/** A server with the settings of the page. */
async function start(): Promise<Server> {
  const server = await Server.start(files.get("config.toml")!);
  ended.push(() => server.stop());
  return server;
}

function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), "lightcone-proxy-"));
  ended.push(() => rmSync(directory, { recursive: true, force: true }));
  mkdirSync(join(directory, "www"));
  return directory;
}

interface Answer {
  status: number;
  text: string;
}

/** A request to the proxy under the name of the page; the status of an answer without a body is that of an upgrade. */
function ask(
  port: number,
  path: string,
  options: { method?: string; headers?: object } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request({
      host: "127.0.0.1",
      port,
      path,
      servername: HOST,
      rejectUnauthorized: false,
      method: options.method ?? "GET",
      headers: { host: HOST, ...options.headers },
    });
    asked.on("error", reject);
    asked.on("upgrade", (response, socket) => {
      socket.destroy();
      resolve({ status: response.statusCode!, text: "" });
    });
    asked.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode!, text }));
    });
    asked.end();
  });
}

test("only the owner of the page may publish", async () => {
  const server = await start();
  const answer = await server.fetch("/v1/database/x", { method: "PUT", body: "" });
  expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining("[LC0114]")]);
});

const proxies: [string, (directory: string, address: string, port: number) => ChildProcess][] = [
  [
    "nginx",
    (directory, address, port) => {
      const { cert, key } = certificate(directory, HOST);
      const site = files
        .get("tasks.conf")!
        .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
        .replace(/ssl_certificate .*;/, `ssl_certificate ${cert};`)
        .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${key};`)
        .replace("http://127.0.0.1:3000", address)
        .replace("/var/www/tasks", join(directory, "www"));
      return startNginx(directory, site);
    },
  ],
  [
    "caddy",
    (directory, address, port) => {
      const site = files
        .get("Caddyfile")!
        .replace(`${HOST} {`, `${HOST}:${port} {\n\ttls internal`)
        .replace("127.0.0.1:3000", new URL(address).host)
        .replace("/var/www/tasks", join(directory, "www"));
      return startCaddy(directory, site);
    },
  ],
];

for (const [name, startProxy] of proxies) {
  test.runIf(isInstalled(name))(`${name} passes calls and WebSockets on, and tells who calls`, async () => {
    const server = await start();
    const directory = temporary();
    const port = await freePort();
    const proxy = startProxy(directory, server.url, port);
    ended.push(() => proxy.kill("SIGKILL"));
    await until("the proxy answers", () =>
      ask(port, "/v1/ping").then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
    const identity = await ask(port, "/v1/identity", { method: "POST" });
    expect(JSON.parse(identity.text)).toHaveProperty("token");
    // What is for programs on the machine is not for who comes through the proxy.
    expect((await ask(port, "/v1/metrics")).status).toBe(403);
    // The server has answered the upgrade: it knows no such database.
    const upgrade = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
      "sec-websocket-protocol": "v2.bsatn.spacetimedb",
    };
    const answer = await ask(port, "/v1/database/nothing/subscribe", { headers: upgrade });
    expect(answer).toEqual({ status: 404, text: expect.stringContaining("nothing") });
  });
}
