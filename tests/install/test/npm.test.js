// The npm packages, from a registry that has nothing else.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
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
    const seconds = () => (performance.now() - started) / 1000;
    const start = ["--yes", "lightcone", "start", "--listen-addr", "127.0.0.1:0"];
    const server = await serve(t, "npx", start, { cwd: home, env });
    t.diagnostic(`the server listens after ${seconds().toFixed(1)} s`);
    await firstCall((...args) => run("npx", ["lightcone", ...args], { cwd: home, env }), server.url);
    const time = seconds();
    t.diagnostic(`the first call is answered after ${time.toFixed(1)} s`);
    // A machine that has much else to do proves nothing.
    if (loadavg()[0] < availableParallelism()) assert.ok(time < FIRST_CALL_SECONDS_MAX);
    await server.stop();
    await assert.rejects(fetch(`${server.url}/v1/ping`), "the server ends with npx");
  });

  await t.test("npm create lightcone makes a project", async () => {
    await npm("create", "--yes", "lightcone@latest", "shop", "--", "--lang", "rust", "--non-interactive");
    assert.ok(existsSync(join(home, "shop/spacetimedb/Cargo.toml")));
  });

  await t.test("the SDK brings no program; @lightcone/cli is the project's own", async (t) => {
    const project = join(home, "project");
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), "{}");
    const inProject = (command, ...args) => run(command, args, { cwd: project, env });
    await inProject("npm", "install", "lightcone");
    assert.ok(!existsSync(join(project, "node_modules/@lightcone")));
    await inProject("npm", "install", "--save-dev", "@lightcone/cli");
    assert.match(await inProject("node_modules/.bin/lightcone", "--version"), new RegExp(`Path: ${project}`));
    const server = await serve(t, "node_modules/.bin/spacetime", ["start", "--listen-addr", "127.0.0.1:0"], {
      cwd: project,
      env,
    });
    process.kill(server.pid, "SIGTERM");
    assert.equal(await server.exited, 0, "the command passes signals on to the program");
  });
});
