// The tarball, its checksum, and what is in it beside the programs.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { file, firstCall, RELEASE, run, scratch, serve } from "../src/release.js";

test("the tarball is what its checksum says, its programs run, and its papers name what they are made of", async (t) => {
  await run("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: RELEASE });
  const home = scratch(t);
  await run("tar", ["-xzf", file(/\.tar\.gz$/), "-C", home, "--strip-components", "1"]);
  const spacetime = join(home, "spacetime");
  const root = ["--root-dir", join(home, "root")];
  const server = await serve(t, spacetime, [...root, "start", "--listen-addr", "127.0.0.1:0"]);
  await firstCall((...args) => run(spacetime, [...root, ...args]), server.url);
  assert.equal(await server.stop(), 0);
  const start = `timeout --signal INT 3 ${spacetime} --root-dir ${root[1]} start --listen-addr 127.0.0.1:0`;
  const shown = await run("script", ["--quiet", "--command", start, "/dev/null"]);
  for (const told of ["Address  http://127.0.0.1:", `Data     ${join(home, "root/data")}`, "Ctrl-C"])
    assert.ok(shown.includes(told), shown);
  await run(spacetime, [...root, "version", "install", "0.1.0", "--from", home]);

  assert.ok(existsSync(join(home, "lib/lightcone/lightcone.tgz")), "projects that it makes name the SDK");

  const bill = JSON.parse(readFileSync(join(home, "sbom.cdx.json"), "utf8"));
  const part = (name) => bill.components.find((component) => component.name === name);
  assert.match(part("tokio").hashes[0].content, /^[\da-f]{64}$/);
  assert.equal(part("wasmtime").purl, `pkg:cargo/wasmtime@${part("wasmtime").version}`);
  for (const name of ["proptest", "serde_derive", "spacetimedb"]) assert.equal(part(name), undefined);
  const needed = bill.dependencies.find(({ ref }) => ref === bill.metadata.component["bom-ref"]).dependsOn;
  assert.ok(needed.some((ref) => ref.startsWith("pkg:cargo/lightcone-server@")));
  const texts = readFileSync(join(home, "THIRD-PARTY-LICENSES"), "utf8");
  assert.ok(texts.includes(`tokio ${part("tokio").version}`));
});
