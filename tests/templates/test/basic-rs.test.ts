import { homedir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Server } from "../../e2e/src/server";
import { Project } from "../src/project";

let server: Server;
beforeAll(async () => {
  server = await Server.start();
});
afterAll(() => server.stop());

const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "lightcone");
// Compiled dependencies are shared with the other Rust tests.
process.env.CARGO_TARGET_DIR = process.env.LIGHTCONE_MODULES_TARGET_DIR ?? join(cache, "modules-target");
const clientTarget = process.env.LIGHTCONE_RUST_CLIENT_TARGET_DIR ?? join(cache, "rust-client-target");
const cargoRun = `unset CARGO RUSTC RUSTC_BOOTSTRAP CARGO_UNSTABLE_BUILD_STD; CARGO_TARGET_DIR=${clientTarget} cargo run`;

test("basic-rs: the client adds a person and sees it", { timeout: 1_200_000 }, async () => {
  const project = await Project.create(server, "basic-rs");
  expect(await project.publish()).toContain("Created new database");
  await project.generate("rust");
  const client = project.start(`${cargoRun} -- Grace`);
  await client.says("Person: Grace", 1_000_000);
  client.stop();
  expect(await project.sql("SELECT * FROM person")).toContain("Grace");
});

const isWanted = /all|console-rs/.test(process.env.LIGHTCONE_TEMPLATES ?? "");
test.runIf(isWanted)("console-rs: names come from the terminal", { timeout: 1_200_000 }, async () => {
  const project = await Project.create(server, "console-rs");
  await project.publish();
  await project.generate("rust");
  const client = project.start(cargoRun);
  await client.says("Type a name", 1_000_000);
  client.type("Grace");
  await client.says("+ Grace");
  client.type("");
  await client.says("A name must not be empty");
  client.stop();
});
