// The npm packages, from a registry that has nothing else.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runServer } from "verdaccio";
import { file, firstCall, run, scratch, serve } from "../src/release.js";

// What a person waits for, on a machine that has Node and nothing of ours.
const FIRST_CALL_SECONDS_MAX = 20;

/** A registry with the packages of the release; resolves to its address. */
async function startRegistry(t, directory) {
  const app = await runServer({
    self_path: directory,
    storage: join(directory, "storage"),
    uplinks: {},
    packages: { "**": { access: "$all", publish: "$all" } },
    max_body_size: "1gb",
    log: { type: "stdout", format: "pretty", level: "error" },
  });
  app.listen(0, "127.0.0.1");
  await once(app, "listening");
  t.after(() => app.close());
  return `127.0.0.1:${app.address().port}`;
}

test("npx lightcone, npm create lightcone, and a project that has its own", async (t) => {
  const directory = scratch(t);
  const registry = await startRegistry(t, directory);
  const home = join(directory, "home");
  mkdirSync(home);
  writeFileSync(join(home, ".npmrc"), `registry=http://${registry}/\n//${registry}/:_authToken=any\n`);
  const inherited = Object.entries(process.env).filter(([name]) => !/^(npm_|XDG_)/i.test(name));
  const env = { ...Object.fromEntries(inherited), HOME: home, npm_config_update_notifier: "false" };
  const npm = (...args) => run("npm", args, { cwd: home, env });
  const names = [
    /^lightcone-[\d.]+tgz$/,
    /^lightcone-cli-/,
    /^lightcone-\w+-\w+-[\d.]+tgz$/,
    /^create-lightcone-/,
  ];
  for (const name of names) await npm("publish", file(name));

  await t.test("the first call is answered in time", async (t) => {
    const started = performance.now();
    const server = await serve(t, "npx", ["--yes", "lightcone", "start", "--listen-addr", "127.0.0.1:0"], {
      cwd: home,
      env,
    });
    t.diagnostic(`the server listens after ${((performance.now() - started) / 1000).toFixed(1)} s`);
    const rows = await firstCall(
      (...args) => run("npx", ["lightcone", ...args], { cwd: home, env }),
      server.url,
    );
    const seconds = (performance.now() - started) / 1000;
    t.diagnostic(`the first call is answered, and what it did is read, after ${seconds.toFixed(1)} s`);
    assert.match(rows, /\b10\b/);
    assert.ok(seconds < FIRST_CALL_SECONDS_MAX);
    await server.stop();
    await assert.rejects(fetch(`${server.url}/v1/ping`), "the server ends with npx");
  });

  await t.test("npm create lightcone makes a project", async () => {
    await npm("create", "--yes", "lightcone@latest", "shop", "--", "--lang", "rust", "--non-interactive");
    assert.ok(existsSync(join(home, "shop/spacetimedb/Cargo.toml")));
  });

  await t.test("the SDK brings no program; @lightcone/cli is the project's own", async () => {
    const project = join(home, "project");
    mkdirSync(project);
    const inProject = (command, ...args) => run(command, args, { cwd: project, env });
    await inProject("npm", "init", "--yes");
    await inProject("npm", "install", "lightcone");
    assert.deepEqual(
      readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith(".")),
      ["lightcone"],
    );
    await inProject("npm", "install", "--save-dev", "@lightcone/cli");
    assert.match(await inProject("npx", "lightcone", "version"), new RegExp(`Path: ${project}`));
    assert.match(await inProject("npx", "spacetime", "version"), new RegExp(`Path: ${project}`));
  });
});
