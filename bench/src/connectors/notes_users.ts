// The RPC servers of authed-load: they check a signed token at every request.

import { randomBytes } from "node:crypto";
import { ownPostgres } from "../init/postgres_backing";
import { type Backing, rpcDefinition } from "../init/rpc_server";
import { sqliteBacking } from "../init/sqlite_backing";
import { signToken } from "../rpc-servers/bearer";
import type { CallArguments, Connector } from "./connector";
import type { PrepareContext } from "./definition";
import { sendHttp } from "./http_client";

const tokenLifeMilliseconds = 24 * 3600 * 1000;
/** Of this invocation: servers that run already must be started with the same one. */
const secret = process.env["NOTES_SECRET"] || randomBytes(32).toString("base64url");

class UserConnector implements Connector {
  readonly #token: string;

  constructor(
    readonly name: string,
    private readonly url: string,
    user = "root",
  ) {
    this.#token = signToken(user, secret, Date.now() + tokenLifeMilliseconds);
  }

  async open(): Promise<void> {}
  async close(): Promise<void> {}

  async createWorker({ index }: { index: number }): Promise<Connector> {
    return new UserConnector(this.name, this.url, `user ${index}`);
  }

  async call(name: string, args: CallArguments = {}): Promise<unknown> {
    const { ok, status, text } = await sendHttp(`${this.url}/rpc`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${this.#token}` },
      body: JSON.stringify({ name, args }),
    });
    const answer = JSON.parse(text) as { ok: boolean; result?: unknown; error?: string };
    if (!ok || !answer.ok) throw new Error(`${this.name}: ${name} failed: ${answer.error ?? status}`);
    return answer.result;
  }
}

type Back = (context: PrepareContext) => Promise<Backing>;

const userDefinition = (key: string, store: "postgres" | "sqlite", back: Back) =>
  rpcDefinition({
    key,
    serverFile: "src/rpc-servers/notes-rpc-server.ts",
    urlVariable: "NOTES_RPC_URL",
    defaultUrl: "http://127.0.0.1:4109",
    portVariable: "NOTES_RPC_PORT",
    startCommand: `NOTES_STORE=${store} NOTES_SECRET=<secret> pnpm tsx src/rpc-servers/notes-rpc-server.ts`,
    async back(context) {
      const backing = await back(context);
      const environment = { ...backing.environment, NOTES_STORE: store, NOTES_SECRET: secret };
      return Object.defineProperty(backing, "environment", { value: environment });
    },
    create: (_config, url) => new UserConnector(key, url),
  });

export const postgresUsers = userDefinition("postgres_rpc", "postgres", ownPostgres());

export const sqliteUsers = userDefinition("sqlite_rpc", "sqlite", sqliteBacking);
