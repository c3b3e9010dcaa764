// `spacetime login` with a real provider, and what servers make of its tokens.

import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Home, startServer } from "../src/lightcone.js";
import { Browser, CLIENT_ID, signingKey, startProvider } from "../src/provider.js";

let provider;
let server;

before(async () => {
  provider = await startProvider();
  server = await startServer(`foreign-issuers = ["${provider.issuer}"]\naudiences = ["${CLIENT_ID}"]`);
});

after(async () => {
  await server.stop();
  await provider.stop();
});

const claims = (token) => JSON.parse(Buffer.from(token.split(".")[1], "base64url").toString());

/** The login of a person through a browser; gives the end of the command. */
async function logIn(home, at, issuer, name, ...more) {
  const args = [
    "login",
    "--auth-host",
    issuer,
    "--client-id",
    CLIENT_ID,
    "--server",
    at.url,
    "--no-browser",
    ...more,
  ];
  const command = home.run(...args);
  const browser = new Browser();
  const page = await browser.open(await command.line("Log in on this page: "), issuer);
  const back = await browser.consent(page, issuer, name);
  assert.match(back.url, /^http:\/\/127\.0\.0\.1:\d+\/callback\?code=/, back.text);
  const shown = await fetch(back.url);
  assert.match(await shown.text(), /You have logged in\./);
  return command.end();
}

async function tokenOf(home, at) {
  const shown = await home.run("login", "show", "--token", "--server", at.url).end();
  return /Your auth token \(don't share this!\) is (\S+)/.exec(shown.out)[1];
}

test("through a browser, with PKCE", async () => {
  const home = new Home();
  const end = await logIn(home, server, provider.issuer, "ann");
  assert.equal(end.code, 0, end.errors);
  assert.doesNotMatch(end.errors, /warning/);
  const identity = /Logged in with identity ([0-9a-f]{64})/.exec(end.out)[1];
  const token = await tokenOf(home, server);
  assert.equal(claims(token).sub, "ann");
  assert.equal((await server.ask(`/v1/identity/${identity}/verify`, token)).status, 204);
  // It is kept for this server, and no other user may read the file.
  assert.equal(statSync(home.config).mode & 0o777, 0o600);
  assert.match(
    readFileSync(home.config, "utf8"),
    new RegExp(`\\[server_tokens\\]\\n"${server.url}" = "${token}"`),
  );
  // The same person is the same identity in the next login.
  const again = new Home();
  const second = await logIn(again, server, provider.issuer, "ann");
  assert.match(second.out, new RegExp(`Logged in with identity ${identity}`));
  home.remove();
  again.remove();
});

test("with a code on another device", async () => {
  const home = new Home();
  const args = ["--client-id", CLIENT_ID, "--server", server.url, "--no-browser", "--device"];
  const command = home.run("login", "--auth-host", provider.issuer, ...args);
  const browser = new Browser();
  const page = await browser.open(await command.line("Open this page, on any device: "), provider.issuer);
  const code = await command.line("and enter the code: ");
  const confirm = await browser.submit(page, provider.issuer, { user_code: code });
  const asked = await browser.submit(confirm, provider.issuer, { confirm: "yes" });
  await browser.consent(asked, provider.issuer, "bob");
  const end = await command.end();
  assert.equal(end.code, 0, end.errors);
  const token = await tokenOf(home, server);
  assert.equal(claims(token).sub, "bob");
  assert.equal((await server.ask("/v1/ping", token)).status, 200);
  home.remove();
});

test("a refusal is told, and costs no login", async () => {
  const home = new Home();
  await logIn(home, server, provider.issuer, "ann");
  const kept = await tokenOf(home, server);
  const args = [
    "login",
    "--auth-host",
    provider.issuer,
    "--client-id",
    CLIENT_ID,
    "--server",
    server.url,
    "--no-browser",
  ];
  const command = home.run(...args);
  const browser = new Browser();
  const page = await browser.open(await command.line("Log in on this page: "), provider.issuer);
  const abort = /href="([^"]*abort[^"]*)"/.exec(page.text)[1];
  const back = await browser.open(new URL(abort, page.url).toString(), provider.issuer);
  assert.match(back.url, /error=access_denied/);
  await fetch(back.url);
  const end = await command.end();
  assert.equal(end.code, 1);
  assert.match(end.errors, /access_denied.*\[LC0872\]/s);
  assert.equal(await tokenOf(home, server), kept);
  const unknown = await home
    .run(...args.slice(0, 3), "--client-id", "unknown", "--device", "--server", server.url)
    .end();
  assert.equal(unknown.code, 1);
  assert.match(unknown.errors, /invalid_client.*\[LC0872\]/s);
  // A provider is no account site.
  const hint = await home.run("login", "--auth-host", provider.issuer, "--no-browser").end();
  assert.match(hint.errors, /--client-id.*\[LC0874\]/s);
  const none = await home.run("login", "--auth-host", server.url, "--client-id", "x", "--no-browser").end();
  assert.match(none.errors, /\[LC0871\]/);
  home.remove();
});

test("a server that does not know the provider, or is for another program", async () => {
  const closed = await startServer('foreign-issuers = "none"');
  const other = await startServer(`foreign-issuers = ["${provider.issuer}"]\naudiences = ["other"]`);
  for (const [at, why] of [
    [closed, /warning: the server does not accept this login: .*LC0135/s],
    [other, /warning: the server does not accept this login: .*InvalidAudience/s],
  ]) {
    const home = new Home();
    const end = await logIn(home, at, provider.issuer, "ann");
    assert.match(end.errors, why);
    home.remove();
  }
  await closed.stop();
  await other.stop();
});

test("a token is never renewed past its end", async () => {
  const short = await startProvider({ idTokenSeconds: 30 });
  const at = await startServer(`foreign-issuers = ["${short.issuer}"]`);
  const home = new Home();
  await logIn(home, at, short.issuer, "ann");
  const token = await tokenOf(home, at);
  const answer = await at.ask("/v1/identity/websocket-token", token, "POST");
  assert.equal(answer.status, 200, answer.text);
  const renewed = JSON.parse(answer.text).token;
  assert.equal(claims(renewed).exp, claims(token).exp);
  // Nor by renewing what was renewed.
  const again = await at.ask("/v1/identity/websocket-token", renewed, "POST");
  assert.equal(claims(JSON.parse(again.text).token).exp, claims(token).exp);
  home.remove();
  await at.stop();
  await short.stop();
});

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/** Sleeps until a token is in the second half of its life, when it is renewed. */
const untilDue = (token) => sleep((claims(token).iat + claims(token).exp) / 2 + 0.5 - Date.now() / 1000);

const refreshToken = (home) => /refresh_token = "([^"]+)"/.exec(readFileSync(home.config, "utf8"))?.[1];

/** A server that writes down everything it is told. */
async function startStranger() {
  let heard = "";
  const server = createServer((request, response) => {
    heard += `${request.url}\n${request.rawHeaders.join("\n")}\n`;
    request.on("data", (part) => (heard += part));
    response.setHeader("content-type", "application/json");
    request.on("end", () =>
      response.end('{"identities":[],"token":"e30.eyJpc3MiOiJ4Iiwic3ViIjoieSIsImlhdCI6MX0.c2ln"}'),
    );
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    heard: () => heard,
    stop: () => new Promise((resolve) => server.close(resolve)),
  };
}

test("a login is renewed before it ends, once, and only its provider hears of it", async () => {
  const short = await startProvider({ idTokenSeconds: 16 });
  const at = await startServer(`foreign-issuers = ["${short.issuer}"]`);
  const stranger = await startStranger();
  const home = new Home();
  const scope = ["--scope", "openid offline_access"];
  const end = await logIn(home, at, short.issuer, "ann", ...scope);
  assert.match(end.errors, /It is renewed by itself/);
  const list = (url) => home.run("list", "--yes", "--server", url).end();
  const first = await tokenOf(home, at);
  const secrets = [refreshToken(home)];
  assert.equal((await list(at.url)).code, 0);
  assert.equal(short.renewals(), 0, "not yet");
  await untilDue(first);
  const ends = await Promise.all(Array.from({ length: 6 }, () => list(at.url)));
  for (const { code, errors } of ends) assert.equal(code, 0, errors);
  assert.equal(short.renewals(), 1, "by one of them");
  const second = await tokenOf(home, at);
  assert.equal(claims(second).sub, "ann");
  assert.ok(claims(second).exp > claims(first).exp);
  assert.equal((await at.ask("/v1/ping", second)).status, 200);
  secrets.push(refreshToken(home), first, second);
  assert.notEqual(secrets[1], secrets[0], "this provider gives new ones");
  // It is for one server, and for one provider.
  await list(stranger.url);
  assert.match(stranger.heard(), /databases/);
  for (const secret of secrets) assert.ok(!stranger.heard().includes(secret));
  // When the provider refuses, the login is good to its end, and then to be made anew.
  assert.equal((await short.revoke(secrets[1])).status, 200);
  await untilDue(second);
  const warned = await list(at.url);
  assert.equal(warned.code, 0, warned.errors);
  assert.match(warned.errors, /warning: .*invalid_grant.*\[LC0876\]/s);
  await sleep(claims(second).exp + 1 - Date.now() / 1000);
  const refused = await list(at.url);
  assert.equal(refused.code, 1);
  assert.match(
    refused.errors,
    /Log in again: spacetime login --auth-host .* --scope 'openid offline_access' .*\[LC0876\]/s,
  );
  // Logging in again mends it.
  await logIn(home, at, short.issuer, "ann", ...scope);
  assert.equal((await list(at.url)).code, 0);
  home.remove();
  await stranger.stop();
  await at.stop();
  await short.stop();
});

test("a logout ends what could renew the login", async () => {
  const home = new Home();
  await logIn(home, server, provider.issuer, "ann", "--scope", "openid offline_access");
  const token = refreshToken(home);
  const end = await home.run("logout", "--server", server.url).end();
  assert.equal(end.code, 0, end.errors);
  assert.equal(refreshToken(home), undefined);
  const renewed = await provider.renew(token);
  assert.equal(renewed.status, 400);
  assert.match(renewed.text, /invalid_grant/);
  // Who did not ask for it has nothing to renew.
  await logIn(home, server, provider.issuer, "ann");
  assert.equal(refreshToken(home), undefined);
  home.remove();
});

test("a provider with new keys is asked again", async () => {
  const first = await startProvider();
  const at = await startServer(`foreign-issuers = ["${first.issuer}"]`);
  const home = new Home();
  assert.doesNotMatch((await logIn(home, at, first.issuer, "ann")).errors, /warning/);
  const old = await tokenOf(home, at);
  await first.stop();
  const second = await startProvider({ port: first.port, key: signingKey("second") });
  // A server asks for new keys every ten seconds at most.
  await new Promise((resolve) => setTimeout(resolve, 11_000));
  assert.doesNotMatch((await logIn(home, at, second.issuer, "ann")).errors, /warning/);
  assert.equal((await at.ask("/v1/ping", await tokenOf(home, at))).status, 200);
  // What the old key has signed is nothing any more.
  assert.equal((await at.ask("/v1/ping", old)).status, 401);
  home.remove();
  await at.stop();
  await second.stop();
});
