// The HTTP client of all connectors that speak HTTP: the `fetch` of Node (section 9). BENCH_HTTP_CLIENT=undici is another for
// all of them alike: `request` of undici, which needs a fraction of the time for each, and so limits servers less.

import { Pool } from "undici";
import { UsageError } from "../config";

export interface HttpRequest {
  method: string;
  headers?: Record<string, string>;
  body?: string;
}

export interface HttpAnswer {
  status: number;
  ok: boolean;
  text: string;
  /** The header `server-timing`, empty without one. */
  serverTiming: string;
}

type Send = (url: string, request: HttpRequest) => Promise<HttpAnswer>;

/** The body is always read: only then is the socket used again. */
async function sendByFetch(url: string, request: HttpRequest): Promise<HttpAnswer> {
  const response = await fetch(url, request);
  const text = await response.text();
  const serverTiming = response.headers.get("server-timing") ?? "";
  return { status: response.status, ok: response.ok, text, serverTiming };
}

/** By origin. As with `fetch`, there are as many sockets as requests under way, each with one. */
const pools = new Map<string, Pool>();

async function sendByUndici(url: string, { method, headers, body }: HttpRequest): Promise<HttpAnswer> {
  const { origin, pathname, search } = new URL(url);
  let pool = pools.get(origin);
  if (!pool) pools.set(origin, (pool = new Pool(origin)));
  const response = await pool.request({
    method: method as "GET",
    path: `${pathname}${search}`,
    headers: headers ?? {},
    body: body ?? null,
  });
  const { statusCode: status } = response;
  const text = await response.body.text();
  const serverTiming = String(response.headers["server-timing"] ?? "");
  return { status, ok: status >= 200 && status < 300, text, serverTiming };
}

const clients: Record<string, { send: Send; software: string; transport: string }> = {
  fetch: { send: sendByFetch, software: "fetch", transport: "HTTP" },
  undici: { send: sendByUndici, software: "undici", transport: "HTTP by undici" },
};

function chosen(): (typeof clients)[string] {
  const name = process.env["BENCH_HTTP_CLIENT"] || "fetch";
  const client = Object.hasOwn(clients, name) ? clients[name] : undefined;
  if (!client) throw new UsageError(`BENCH_HTTP_CLIENT is ${Object.keys(clients).join(" or ")}, not ${name}`);
  return client;
}

export const sendHttp: Send = (url, request) => chosen().send(url, request);

/** What results say of it. */
export const httpSoftware = (): string => chosen().software;
export const httpTransport = (): string => chosen().transport;
