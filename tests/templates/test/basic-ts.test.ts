import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Server } from "../../e2e/src/server";
import { Project } from "../src/project";

let server: Server;
beforeAll(async () => {
  server = await Server.start();
});
afterAll(() => server.stop());

test.each([
  ["our package", undefined],
  ["the published package", "npm:spacetimedb@2.10.*"],
])("basic-ts with %s: the client adds a person and sees it", async (_, sdk) => {
  const project = await Project.create(server, "basic-ts", sdk ? "published" : "ours", sdk);
  expect(await project.publish()).toContain("Created new database");
  await project.generate("typescript");
  await project.shell("npx tsc --noEmit");
  const client = project.start("npm start -- Grace");
  await client.says("Person: Grace");
  await client.says("Press Ctrl-C");
  client.stop();
  expect(await project.sql("SELECT * FROM person")).toContain("Grace");
  const logs = await server.home.ok("logs", "--no-config", "--server", server.url, project.database);
  expect(logs).toContain("Hello, Grace!");
});

test("nodejs-ts: commands come from the terminal, and the identity stays", async () => {
  const project = await Project.create(server, "nodejs-ts");
  await project.publish();
  await project.generate("typescript");
  await project.shell("npx tsc --noEmit");
  const first = project.start("npx tsx src/main.ts");
  await first.says("Commands:");
  first.type("add Ada Lovelace");
  await first.says("+ Ada Lovelace");
  first.type("nonsense");
  await first.says("Unknown command: nonsense");
  const identity = /as ([0-9a-f]{64})/.exec(first.output())![1];
  first.stop();
  const second = project.start("npx tsx src/main.ts");
  await second.says(`as ${identity}`);
  await second.says("Commands:");
  second.type("list");
  await second.says("  Ada Lovelace");
  second.stop();

  // A server that was set up anew does not know the identity: the program says so, and goes on with a new one.
  writeFileSync(project.path(".token.local"), "of another server");
  const third = project.start("npx tsx src/main.ts");
  await third.says("there will be a new one");
  await third.says("Commands:");
  expect(third.output()).not.toContain(identity);
  third.stop();
});
