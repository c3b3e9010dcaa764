import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Server } from "../../e2e/src/server";
import { Project } from "../src/project";

let server: Server;
beforeAll(async () => {
  server = await Server.start();
});
afterAll(() => server.stop());

test("dev: a change is built, published and generated; mistakes are told and mended", async () => {
  const project = await Project.create(server, "basic-ts");
  const dev = project.dev("--run", "echo the client is $SPACETIMEDB_DB_NAME; sleep 1000");
  await dev.says("Watching for changes.");
  const local = JSON.parse(readFileSync(project.path("spacetime.local.json"), "utf8")) as {
    database: string;
  };
  await dev.says(`the client is ${local.database}`);
  expect(readFileSync(project.path(".env.local"), "utf8")).toContain(
    `VITE_SPACETIMEDB_DB_NAME=${local.database}`,
  );
  const index = project.path("src/module_bindings/index.ts");
  expect(readFileSync(index, "utf8")).toContain("person: __table");

  const source = project.path("spacetimedb/src/index.ts");
  const good = readFileSync(source, "utf8");
  const call = (...args: string[]) =>
    server.home.ok("call", "--no-config", "--server", server.url, local.database, ...args);
  writeFileSync(source, good.replace("Hello, World!", "Good evening!"));
  await dev.says(/Ready after \d+ ms\./);
  await call("say_hello");
  await dev.says("Good evening!");

  writeFileSync(source, good.replace("export default", "export default {{"));
  await dev.says("[LC0635]");
  await dev.says("Waiting for the next change.");
  const seen = dev.output().length;
  writeFileSync(
    source,
    `${good}\nexport const shout = spacetimedb.reducer(() => { console.log('LOUD'); });\n`,
  );
  while (!dev.output().slice(seen).includes("Ready after")) await new Promise((done) => setTimeout(done, 20));
  expect(readFileSync(index, "utf8")).toContain("ShoutReducer");
  await call("shout");
  await dev.says("LOUD");
  console.log(dev.output().match(/Ready after \d+ ms/g));
  await dev.end();
});
