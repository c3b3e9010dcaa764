// The client side of the HTTP RPC format (section 9): what every connector with a `POST /rpc` shares.

import { outcomeUnknownText } from "../../rpc-servers/rpc";
import { accountsByMethods } from "../accounts";
import { type CallArguments, type Connector, Refused } from "../connector";
import { sendHttp } from "../http_client";

export interface RpcConnectorOptions {
  name: string;
  /** The address of the server, without `/rpc`. */
  url: string;
  initialBalance: number;
  /** `open` fails if the server does not answer `health`; "ignored" asks and goes on, "skipped" does not ask. */
  health?: "required" | "ignored" | "skipped";
  /** Send `args` even where there are none, and accept answers without `ok` (bun). */
  alwaysSendsArguments?: boolean;
  /** Look at the HTTP status before the body (supabase, planetscale, bun). */
  checksStatusFirst?: boolean;
  /** A server without `SEED_INITIAL_BALANCE` skips the verification: is that a failure? (sqlite) */
  skippedVerifyFails?: boolean;
  headers?: Record<string, string>;
}

interface RpcAnswer {
  ok?: boolean;
  result?: unknown;
  error?: string;
}

export function rpcConnection(options: RpcConnectorOptions, isWorker = false): Connector {
  const { name: system, url, initialBalance, health = "required", skippedVerifyFails } = options;
  if (!url) throw new Error(`${system}: the address of its RPC server is empty`);
  const endpoint = `${url.replace(/\/+$/, "")}/rpc`;
  const headers = { "content-type": "application/json", ...options.headers };
  const call = async (name: string, args?: CallArguments): Promise<unknown> => {
    const sent = args ?? (options.alwaysSendsArguments ? {} : undefined);
    const body = JSON.stringify(sent === undefined ? { name } : { name, args: sent });
    const { ok, status, text } = await sendHttp(endpoint, { method: "POST", headers, body });
    if (options.checksStatusFirst && !ok)
      throw refusal(`${system}: ${name} answered ${status}`, errorOf(text));
    const answer = parse(system, name, text);
    if (options.alwaysSendsArguments && ok && answer.ok === undefined) return answer;
    if (!ok || answer.ok !== true)
      throw refusal(`${system}: ${name} failed`, answer.error ?? `HTTP ${status}`);
    return answer.result;
  };
  return {
    name: system,
    async open() {
      if (health === "skipped" || isWorker) return;
      await call("health").catch((error: unknown) => {
        if (health === "required") throw error;
      });
    },
    close: async () => {},
    call,
    ...accountsByMethods({ name: system, initialBalance, isWorker }, call, skippedVerifyFails),
    createWorker: async () => rpcConnection(options, true),
  };
}

/** The server did nothing, unless it says that it does not know. */
function refusal(what: string, why: string): Error {
  const message = `${what}: ${why}`;
  return why.startsWith(outcomeUnknownText) ? new Error(message) : new Refused(message);
}

function parse(connector: string, method: string, text: string): RpcAnswer {
  try {
    return JSON.parse(text) as RpcAnswer;
  } catch {
    throw new Error(`${connector}: the answer to ${method} is not JSON: ${text.slice(0, 200)}`);
  }
}

function errorOf(text: string): string {
  try {
    return (JSON.parse(text) as RpcAnswer).error ?? text.slice(0, 200);
  } catch {
    return text.slice(0, 200);
  }
}
