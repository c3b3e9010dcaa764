// The client side of the HTTP RPC format (section 9): what every connector with a `POST /rpc` shares.

import { outcomeUnknownText } from "../../rpc-servers/rpc";
import {
  type Account,
  type CallArguments,
  type Connector,
  judgeTotals,
  Refused,
  VerificationFailure,
  type VerifyTotals,
} from "../connector";
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
}

interface RpcAnswer {
  ok?: boolean;
  result?: unknown;
  error?: string;
}

/** How many balances one answer of the method `balances` has at most. */
const balancesPerRequest = 20_000;

export class RpcConnector implements Connector {
  readonly name: string;
  readonly #endpoint: string;

  constructor(
    protected readonly options: RpcConnectorOptions,
    private readonly isWorker = false,
  ) {
    this.name = options.name;
    if (!options.url) throw new Error(`${options.name}: the address of its RPC server is empty`);
    this.#endpoint = `${options.url.replace(/\/+$/, "")}/rpc`;
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
    const worker = new RpcConnector(this.options, true);
    await worker.open();
    return worker;
  }

  async getAccount(id: number): Promise<Account | null> {
    const found = (await this.call("getAccount", { id })) as { id: number; balance: string } | null;
    return found === null || found === undefined ? null : { id: found.id, balance: BigInt(found.balance) };
  }

  async verify(): Promise<VerifyTotals> {
    if (this.isWorker) throw new VerificationFailure(`${this.name}: only the root connection verifies`);
    const answer = (await this.call("verify")) as
      | { skipped: true }
      | { accounts: string; total: string; changed: string };
    if ("skipped" in answer) {
      if (this.options.skippedVerifyFails === false) return { accounts: 0n, total: 0n, changed: 0n };
      throw new VerificationFailure(
        `${this.name}: its server has no SEED_INITIAL_BALANCE and skipped the check`,
      );
    }
    const totals = {
      accounts: BigInt(answer.accounts),
      total: BigInt(answer.total),
      changed: BigInt(answer.changed),
    };
    return judgeTotals(totals, this.options.initialBalance);
  }

  async balances(): Promise<BigInt64Array> {
    const all: bigint[] = [];
    for (;;) {
      const page = (await this.call("balances", { from: all.length, count: balancesPerRequest })) as string[];
      for (const balance of page) all.push(BigInt(balance));
      if (page.length < balancesPerRequest) return BigInt64Array.from(all);
    }
  }

  async call(name: string, args?: CallArguments): Promise<unknown> {
    const sent = args ?? (this.options.alwaysSendsArguments ? {} : undefined);
    const response = await sendHttp(this.#endpoint, {
      method: "POST",
      headers: { "content-type": "application/json" },
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
