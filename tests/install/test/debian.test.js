// The Debian package on this machine, which is as it was afterwards.

import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { after, test } from "node:test";
import { file, firstCall, run, scratch, serve } from "../src/release.js";

const UNIT = "/usr/lib/systemd/system/lightcone.service";
const STATE = "/var/lib/lightcone";

const isThere = (command, ...args) =>
  run(command, args).then(
    () => true,
    () => false,
  );

/** Why this machine is not the one to install a package on. */
async function reasonToSkip() {
  if (process.getuid() !== 0 || !(await isThere("dpkg-deb", "--version")))
    return "only root installs packages, and only on Debian";
  if (existsSync("/run/systemd/system")) return "it would start a service on this machine";
  return (existsSync(STATE) || existsSync(UNIT)) && "this machine has a Lightcone of its own";
}

const skip = await reasonToSkip();
// Also when a test fails; behind what ends its server.
if (!skip) after(() => run("dpkg", ["--purge", "lightcone"]));

test("the package is installed, serves as its own user, and is purged", { skip }, async (t) => {
  await run("dpkg", ["--install", file(/\.deb$/)]);
  assert.equal(statSync(STATE).mode & 0o777, 0o700);
  assert.ok(
    existsSync("/etc/systemd/system/multi-user.target.wants/lightcone.service"),
    "it starts with the machine",
  );
  for (const name of ["copyright", "THIRD-PARTY-LICENSES", "sbom.cdx.json"])
    assert.ok(existsSync(`/usr/share/doc/lightcone/${name}`));
  assert.ok(existsSync("/usr/lib/lightcone/lightcone.tgz"), "projects that it makes name the SDK");

  const command = /^ExecStart=(.*)$/m.exec(readFileSync(UNIT, "utf8"))[1].split(" ");
  const asItsUser = ["--reuid", "lightcone", "--regid", "lightcone", "--clear-groups", "--", ...command];
  const server = await serve(t, "setpriv", [...asItsUser, "--listen-addr", "127.0.0.1:0"], { cwd: "/" });
  const env = { ...process.env, HOME: scratch(t), XDG_CONFIG_HOME: "" };
  await firstCall((...args) => run("/usr/bin/spacetime", args, { cwd: "/", env }), server.url);
  assert.equal(await server.stop(), 0);

  await run("dpkg", ["--remove", "lightcone"]);
  assert.ok(existsSync(`${STATE}/data`), "databases outlive the package");
  await run("dpkg", ["--purge", "lightcone"]);
  assert.ok(!existsSync(STATE) && !existsSync(UNIT));
  assert.equal(await isThere("id", "lightcone"), false);
});

test("systemd understands the unit, and finds little that it could still be denied", async (t) => {
  if (!(await isThere("systemd-analyze", "--version"))) return t.skip("systemd is not installed");
  const unit = new URL("../../../packaging/debian/lightcone.service", import.meta.url).pathname;
  // Exposure in tenths of its scale of 0 to 10; one without any restriction has 96.
  await run("systemd-analyze", ["security", "--offline=true", "--threshold=20", unit]);
});
