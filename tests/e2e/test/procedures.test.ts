// Procedures, with the published npm package and the command line.

import { afterAll, beforeAll, expect, test } from "vitest";
import { connectCoverage, subscribe } from "../src/sdk";
import { Server, wasm } from "../src/server";

let server: Server;

beforeAll(async () => {
  server = await Server.start();
  await server.publish("all", wasm("coverage"));
  await server.publish("procedures", wasm("procedures"));
});
afterAll(() => server?.stop());

test("the npm package gets what a procedure returns", async () => {
  const client = await connectCoverage(server, "all");
  await subscribe(client.connection, "SELECT * FROM every_number");
  const sums = await Promise.all(
    [1n, 2n, 3n].map((left) => client.connection.procedures.addNumbers({ left, right: 40n })),
  );
  expect(sums.map((sum) => sum.total)).toEqual([41n, 42n, 43n]);
  client.connection.disconnect();
  await client.ended;
});

test("the command line prints what a procedure returns, and why it failed", async () => {
  expect((await server.cliOk("call", "procedures", "add_twice", "1", "5")).trim()).toBe("10");
  expect((await server.cliOk("call", "procedures", "peek", "1")).trim()).toBe("[0,10]");
  const failed = await server.cli("call", "procedures", "add_and_fail", "1");
  expect(failed.code).not.toBe(0);
  expect(failed.stderr).toContain("The module instance encountered a fatal error");
  expect((await server.cliOk("call", "procedures", "peek", "1")).trim()).toBe("[0,11]");
});
