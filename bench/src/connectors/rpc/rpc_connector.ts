// The client side of the HTTP RPC format (section 9): what every connector with a `POST /rpc` shares.

import { outcomeUnknownText } from "../../rpc-servers/rpc";
import { AccountsConnector } from "../accounts_connector";
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

export class RpcConnector extends AccountsConnector {
  readonly #endpoint: string;
  readonly #headers: Record<string, string>;

  constructor(
    protected readonly options: RpcConnectorOptions,
    isWorker = false,
  ) {
    super(options.name, options.initialBalance, isWorker, options.skippedVerifyFails);
    if (!options.url) throw new Error(`${options.name}: the address of its RPC server is empty`);
    this.#endpoint = `${options.url.replace(/\/+$/, "")}/rpc`;
    this.#headers = { "content-type": "application/json", ...options.headers };
  }

  async open(): Promise<void> {
    const health = this.options.health ?? "required";
    if (health === "skipped" || this.isWorker) return;
    try {
      await this.call("health");
    } catch (error) {
      if (health === "required") throw error;
    }
  }

  async close(): Promise<void> {}

  async createWorker(_which: { index: number; total: number }): Promise<Connector> {
    return new RpcConnector(this.options, true);
  }

  async call(name: string, args?: CallArguments): Promise<unknown> {
    const sent = args ?? (this.options.alwaysSendsArguments ? {} : undefined);
    const response = await sendHttp(this.#endpoint, {
      method: "POST",
      headers: this.#headers,
      body: JSON.stringify(sent === undefined ? { name } : { name, args: sent }),
    });
    const { text } = response;
    if (this.options.checksStatusFirst && !response.ok)
      throw refusal(`${this.name}: ${name} answered ${response.status}`, errorOf(text));
    const answer = parse(this.name, name, text);
    if (this.options.alwaysSendsArguments && response.ok && answer.ok === undefined) return answer;
    if (!response.ok || answer.ok !== true) {
      throw refusal(`${this.name}: ${name} failed`, answer.error ?? `HTTP ${response.status}`);
    }
    return answer.result;
  }
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
