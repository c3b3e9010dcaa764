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

test("basic-rs: the client adds a person and sees it", { timeout: 1_200_000 }, async () => {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "lightcone");
  // Compiled dependencies are shared with the other Rust tests.
  process.env.CARGO_TARGET_DIR = process.env.LIGHTCONE_MODULES_TARGET_DIR ?? join(cache, "modules-target");
  const project = await Project.create(server, "basic-rs");
  expect(await project.publish()).toContain("Created new database");
  await project.generate("rust");
  const client = project.start(
    "unset CARGO RUSTC RUSTC_BOOTSTRAP CARGO_UNSTABLE_BUILD_STD; " +
      `CARGO_TARGET_DIR=${process.env.LIGHTCONE_RUST_CLIENT_TARGET_DIR ?? join(cache, "rust-client-target")} cargo run -- Grace`,
  );
  await client.says("Person: Grace", 1_000_000);
  client.stop();
  expect(await project.sql("SELECT * FROM person")).toContain("Grace");
});
