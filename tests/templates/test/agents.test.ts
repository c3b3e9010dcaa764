// AGENTS.md and README.md teach by examples: they are modules and a client that run.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Server } from "../../e2e/src/server";
import { Project } from "../src/project";

let server: Server;
beforeAll(async () => {
  server = await Server.start();
});
afterAll(() => server.stop());

test("AGENTS.md: its module and its client work", async () => {
  const project = await Project.create(server, "basic-ts", "agents");
  const text = readFileSync(project.path("AGENTS.md"), "utf8");
  const [module, client] = [...text.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code!);
  writeFileSync(project.path("spacetimedb/src/index.ts"), module!);
  await project.publish();
  await project.generate("typescript");
  const where = client!
    .replace("'http://127.0.0.1:3000'", JSON.stringify(server.url))
    .replace("'name'", JSON.stringify(project.database));
  writeFileSync(project.path("src/main.ts"), `import './websocket';\n${where}`);
  await project.shell("npx tsc --noEmit && npx tsc --noEmit -p spacetimedb");
  const running = project.start("npx tsx src/main.ts");
  await running.says("hello");
  running.stop();
  expect(await project.sql("SELECT text FROM message")).toContain("hello");
});

test("README.md: its program takes messages, and only sensible ones", async () => {
  const project = await Project.create(server, "basic-ts", "readme");
  const text = readFileSync(join(import.meta.dirname, "../../../README.md"), "utf8");
  const program = /```ts\n(.*?)```/s.exec(text)![1]!;
  expect(program.trimEnd().split("\n").length).toBeLessThanOrEqual(30);
  writeFileSync(project.path("spacetimedb/src/index.ts"), program);
  await project.shell("npx tsc --noEmit -p spacetimedb");
  await project.publish();
  const call = (message: string) =>
    server.cli("call", "--no-config", project.database, "send_message", JSON.stringify(message));
  expect((await call("hello")).code).toBe(0);
  expect((await call(" ")).stderr).toContain("A message must not be empty");
  expect(await project.sql("SELECT text FROM message")).toContain("hello");
});
