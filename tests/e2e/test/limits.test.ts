// Named limits of config.toml: each answers in a way that says what happened, and nothing else suffers.

import { writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RawClient } from "../src/raw-client";
import { Home, Server, sleep, wasm } from "../src/server";
import { Writer } from "../src/wire";

const CONFIG = `
[websocket]
ping-interval = "200ms"
idle-timeout = "800ms"
[limits]
connections-max = 4
databases-max = 2
program-bytes-max = 300000
`;

let server: Server;
beforeAll(async () => {
  server = await Server.start(CONFIG);
  await server.publish("bank", wasm("transfer"));
});
afterAll(() => server?.stop());

const upgradeRequest =
  "GET /v1/database/bank/subscribe HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n" +
  "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: v2.bsatn.spacetimedb\r\n\r\n";

test("a client that does not answer pings is dropped; one that does stays", async () => {
  const alive = await RawClient.connect(server.url, "bank");
  let pings = 0;
  alive.socket.on("ping", () => (pings += 1));
  const { hostname, port } = new URL(server.url);
  const mute = connectTcp(Number(port), hostname);
  const start = performance.now();
  const received: Buffer[] = [];
  mute.on("data", (part) => received.push(part)).on("error", () => {});
  const ended = new Promise((resolve) => mute.once("close", resolve));
  mute.write(upgradeRequest);
  await ended;
  expect(performance.now() - start).toBeGreaterThan(700);
  // Pings came, and no Close frame at the end.
  const bytes = Buffer.concat(received);
  expect(bytes.includes(Buffer.from([0x89, 0x00]))).toBe(true);
  expect(bytes.subarray(-2)).toEqual(Buffer.from([0x89, 0x00]));
  await sleep(1200);
  expect(pings).toBeGreaterThan(2);
  expect((await alive.call("seed", new Writer().u32(1).i64(1n).done())).kind).toBe("Ok");
  await alive.close();
});

test("one connection too many is answered 503", async () => {
  const clients: RawClient[] = [];
  let status = 0;
  for (let i = 0; i < 8 && status === 0; i++) {
    const client = RawClient.open(server.url, "bank");
    client.socket.on("unexpected-response", (_, response) => {
      status = response.statusCode ?? -1;
      client.socket.terminate();
    });
    await Promise.race([
      client.next().catch(() => {}),
      new Promise((resolve) => client.socket.once("unexpected-response", resolve)),
    ]);
    clients.push(client);
  }
  expect(status).toBe(503);
  expect(clients.length).toBeLessThanOrEqual(5);
  for (const client of clients) client.socket.terminate();
  await sleep(100);
  await (await RawClient.connect(server.url, "bank")).close();
});

test("a program that is too large, and one database too many", async () => {
  const large = await server.cli("publish", "--bin-path", wasm("coverage"), "-y", "large");
  expect(large.code).toBe(1);
  expect(large.stderr).toMatch(/length limit exceeded|program-bytes-max/);
  await server.publish("second", wasm("transfer"));
  const third = await server.cli("publish", "--bin-path", wasm("transfer"), "-y", "third");
  expect(third.code).toBe(1);
  expect(third.stderr).toContain("databases-max");
  expect((await server.cli("call", "second", "seed", "1", "1")).code).toBe(0);
});

test("only those who may publish", async () => {
  const { stdout } = await server.home.run("login", "show");
  const owner = /[0-9a-f]{64}/.exec(stdout)![0];
  const token = /ey[\w-]+\.[\w-]+\.[\w-]+/.exec(
    (await server.home.run("login", "show", "--token")).stdout,
  )![0];
  expect(await server.terminate()).toBe(0);
  writeFileSync(server.home.path("data/config.toml"), `${CONFIG}[publish]\nallowed = ["${owner}"]\n`);
  await server.launch();
  // It is the same server on another port: a login is kept for each address.
  await server.home.ok("login", "--token", token, "--server", server.url);
  const stranger = new Home();
  try {
    await stranger.ok("login", "--server-issued-login", server.url);
    const refused = await stranger.run(
      "publish",
      "--server",
      server.url,
      "--bin-path",
      wasm("transfer"),
      "-y",
      "mine",
    );
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^Error: /m);
    await server.publish("bank", wasm("transfer"));
  } finally {
    stranger.removeNow();
  }
});

test("a configuration that cannot be is refused at the start, with the key", async () => {
  await server.terminate();
  for (const [text, named] of [
    ['[websocket]\nping-interval = "40s"\n', "ping-interval"],
    ["[limits]\ncall-ms-max = 0\n", "call-ms-max"],
    ["[limits\n", "config.toml"],
    ['[websocket]\nidle-timeout = "soon"\n', "idle-timeout"],
  ]) {
    writeFileSync(server.home.path("data/config.toml"), text);
    const result = await server.home.run("start", "--listen-addr", "127.0.0.1:0", "--non-interactive");
    expect(result.code, text).toBe(1);
    expect(result.stdout + result.stderr, text).toContain(named);
  }
});

test("a polite stop does not wait for clients", async () => {
  writeFileSync(server.home.path("data/config.toml"), "");
  await server.launch();
  const client = await RawClient.connect(server.url, "bank");
  const start = performance.now();
  expect(await server.terminate()).toBe(0);
  expect(performance.now() - start).toBeLessThan(10_000);
  await client.closed;
});
