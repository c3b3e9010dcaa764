// A real provider, and a person with a browser.

import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { Provider } from "oidc-provider";

export const CLIENT_ID = "lightcone-cli";

/** A key for ID tokens, as the provider wants it. */
export function signingKey(kid) {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid, alg: "RS256", use: "sig" };
}

/** Starts a provider; `port` 0 takes a free one. */
export async function startProvider({ port = 0, key = signingKey("first"), idTokenSeconds = 3600 } = {}) {
  // The provider must know its address before it has one.
  const { createServer } = await import("node:http");
  const server = createServer((request, response) => handle(request, response));
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        application_type: "native",
        token_endpoint_auth_method: "none",
        grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
        response_types: ["code"],
        redirect_uris: ["http://127.0.0.1/callback"],
      },
    ],
    jwks: { keys: [key] },
    cookies: { keys: ["only for tests"] },
    features: {
      deviceFlow: { enabled: true },
      devInteractions: { enabled: true },
      revocation: { enabled: true },
    },
    pkce: { required: () => true },
    ttl: {
      IdToken: idTokenSeconds,
      AccessToken: 600,
      DeviceCode: 600,
      Grant: 600,
      Interaction: 600,
      RefreshToken: 600,
      Session: 600,
    },
    async findAccount(_context, id) {
      return { accountId: id, claims: async () => ({ sub: id }) };
    },
  });
  const handle = provider.callback();
  let renewals = 0;
  provider.on("grant.success", (context) => {
    if (context.oidc.params.grant_type === "refresh_token") renewals++;
  });
  const post = async (path, fields) => {
    const body = new URLSearchParams({ client_id: CLIENT_ID, ...fields });
    const response = await fetch(`${issuer}${path}`, { method: "POST", body });
    return { status: response.status, text: await response.text() };
  };
  return {
    issuer,
    /** How often a login was renewed. */
    renewals: () => renewals,
    /** Renews a login, with its refresh token. */
    renew: (token) => post("/token", { grant_type: "refresh_token", refresh_token: token }),
    /** Ends a login. */
    revoke: (token) => post("/token/revocation", { token }),
    port: server.address().port,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** A browser with cookies and without anything else. */
export class Browser {
  #cookies = new Map();

  /** Follows redirects until a page comes, or an address outside of `within`. */
  async open(url, within, body) {
    let method = body ? "POST" : "GET";
    for (let hop = 0; hop < 20; hop++) {
      const response = await fetch(url, {
        method,
        body,
        redirect: "manual",
        headers: { cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      });
      for (const line of response.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
        if (value === "") this.#cookies.delete(name);
        else this.#cookies.set(name, value);
      }
      const location = response.headers.get("location");
      if (!location) return { url, status: response.status, text: await response.text() };
      url = new URL(location, url).toString();
      if (!url.startsWith(within)) return { url, status: 0, text: "" };
      method = "GET";
      body = undefined;
    }
    throw new Error("too many redirects");
  }

  /** Fills in the form of a page. */
  submit(page, within, values) {
    const action = /<form[^>]*action="([^"]+)"/.exec(page.text)?.[1] ?? page.url;
    const form = new URLSearchParams();
    for (const [, tag] of page.text.matchAll(/<input([^>]*)>/g)) {
      const name = /name="([^"]+)"/.exec(tag)?.[1];
      if (name) form.set(name, /value="([^"]*)"/.exec(tag)?.[1] ?? "");
    }
    for (const [name, value] of Object.entries(values)) form.set(name, value);
    return this.open(new URL(action.replaceAll("&amp;", "&"), page.url).toString(), within, form);
  }

  /** Logs in and agrees to everything, until the provider sends the browser away or has nothing more to ask. */
  async consent(page, issuer, name) {
    for (let step = 0; step < 5 && page.status === 200 && page.url.includes("/interaction/"); step++) {
      const isLogin = page.text.includes('name="login"');
      page = await this.submit(page, issuer, isLogin ? { login: name, password: "any" } : {});
    }
    return page;
  }
}
