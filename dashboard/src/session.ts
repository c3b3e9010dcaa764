// Who the visitor is: a token, in memory. It is kept in the browser only if the visitor says so.

import * as api from "./api";
import { isObject } from "./json";
import { Store } from "./store";

const KEPT_AS = "lightcone.dashboard.login";

export interface Session {
  token: string;
  identity: string;
  isKept: boolean;
}

export const session = new Store<Session | undefined>(undefined);
/** A token that came with the address while another login is kept: the visitor decides. */
export const offered = new Store<string | undefined>(undefined);

/** The identity in a token's claims, or undefined for what is no token. Whether it is valid the server says. */
export function identityIn(token: string): string | undefined {
  try {
    const claims = token.split(".")[1]!.replaceAll("-", "+").replaceAll("_", "/");
    const parsed: unknown = JSON.parse(atob(claims));
    const identity = isObject(parsed) ? parsed["hex_identity"] : undefined;
    return typeof identity === "string" && /^[0-9a-f]{64}$/.test(identity) ? identity : "";
  } catch {
    return undefined;
  }
}

/** Begins a session if the server takes the token. */
export async function logIn(text: string, isKept: boolean): Promise<void> {
  const token = text.trim().replace(/^Bearer\s+/i, "");
  if (identityIn(token) === undefined)
    throw new Error("This is no token. It has three parts with dots between them.");
  const answer = await api.ask("ping", { token });
  if (answer.status !== 200)
    throw new api.ApiError(answer.status, answer.text || "The server does not take this token.");
  // Every answer of these routes says who the caller was; tokens of other issuers do not say it themselves.
  let identity = identityIn(token)!;
  if (identity === "") identity = await askIdentity(token);
  begin({ token, identity, isKept });
}

async function askIdentity(token: string): Promise<string> {
  const answer = await api.ask("identity/websocket-token", { method: "POST", token });
  const parsed: unknown = answer.status === 200 ? JSON.parse(answer.text) : undefined;
  const short = isObject(parsed) ? parsed["token"] : undefined;
  return (typeof short === "string" && identityIn(short)) || "";
}

/** A new identity, as every client without a token gets one. */
export async function visit(): Promise<void> {
  const made = await api.json("identity", { method: "POST" });
  if (!isObject(made) || typeof made["token"] !== "string" || typeof made["identity"] !== "string") {
    throw new Error("The server gave no identity.");
  }
  begin({ token: made["token"], identity: made["identity"], isKept: false });
}

function begin(value: Session): void {
  if (value.isKept) localStorage.setItem(KEPT_AS, value.token);
  session.set(value);
}

export function logOut(): void {
  localStorage.removeItem(KEPT_AS);
  localStorage.removeItem("lightcone.dashboard.history");
  session.set(undefined);
}

/** The token in the address, which goes from there at once. */
function handedIn(): string | undefined {
  const token = /^#token=([\w.-]+)$/.exec(location.hash)?.[1];
  if (token !== undefined) history.replaceState(null, "", `${location.pathname}#/`);
  return token;
}

/** The login of before, or the one that comes with the address. */
export async function restore(): Promise<void> {
  const token = handedIn();
  const kept = localStorage.getItem(KEPT_AS) ?? undefined;
  if (token !== undefined && (kept === undefined || kept === token)) {
    await logIn(token, kept !== undefined);
  } else if (kept !== undefined) {
    // A link must not quietly replace the identity of its reader.
    if (token !== undefined) offered.set(token);
    await logIn(kept, true);
  }
}

/** A link with a token that is followed while the page is open. */
addEventListener("hashchange", () => {
  const token = handedIn();
  if (token === undefined || token === session.get()?.token) return;
  if (session.get() !== undefined) offered.set(token);
  else logIn(token, false).catch(() => {});
});
