// `spacetime login` with a real provider, and what servers make of its tokens.

import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
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
  // It is kept for this server, and nobody else may read the file.
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
    .run(...args.slice(0, 3), "--client-id", "nobody", "--device", "--server", server.url)
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
