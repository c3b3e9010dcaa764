// The systems of authed-load: RPC servers that check a signed token at every request, and this repository's server, where a
// connection is authenticated once and for all.

import { randomBytes } from "node:crypto";
import { DbConnection as LightconeConnection } from "../../../bindings/notes-lightcone";
import { DbConnection as SpacetimedbConnection } from "../../../bindings/notes-spacetimedb";
import type { Account, CallArguments, Connector, VerifyTotals } from "../../connectors/connector";
import { sendHttp } from "../../connectors/http_client";
import { postgresBacking } from "../../init/postgres_backing";
import type { PrepareContext } from "../../init/prepare";
import { type Backing, rpcDefinition } from "../../init/rpc_server";
import { sqliteBacking } from "../../init/sqlite_backing";
import { signToken } from "../../rpc-servers/bearer";
import { sdkDefinition } from "../sdk_definition";
import type { Outcome, RunOperation, WorkloadCase } from "../workload";

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

  getAccount(): Promise<Account | null> {
    return Promise.reject(new Error(`${this.name}: there are no accounts`));
  }

  verify(): Promise<VerifyTotals> {
    return Promise.reject(new Error(`${this.name}: there are no accounts`));
  }
}

const call =
  (name: string, args: (given: CallArguments) => CallArguments = (given) => given): RunOperation =>
  async (connection, given): Promise<Outcome> => ({
    ok: true,
    found: await connection.call(name, args(given)),
  });

const rpcOps: Record<string, RunOperation> = {
  seed: call("note_seed"),
  read: call("note_find_many"),
  create: call("note_create"),
  update: call("note_update"),
  delete: call("note_delete"),
  events: call("note_events"),
};

type Back = (context: PrepareContext) => Promise<Backing>;

const rpcCase = (key: string, label: string, store: "postgres" | "sqlite", back: Back): WorkloadCase => ({
  system: key,
  label,
  ops: rpcOps,
  definition: rpcDefinition({
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
  }),
});

export const postgresNotesCase = rpcCase(
  "postgres_rpc",
  "Node.js + Postgres",
  "postgres",
  postgresBacking({
    urlVariables: ["PG_URL"],
    mayStart: true,
    startCommand: "start a PostgreSQL and set PG_URL=<its address>",
    serverVariable: "PG_URL",
    asksForIsolation: true,
  }),
);

export const sqliteNotesCase = rpcCase("sqlite_rpc", "Node.js + SQLite", "sqlite", sqliteBacking);

const sdkOps: Record<string, RunOperation> = {
  seed: call("noteSeed", ({ notes }) => ({ notes, grouped: 0, group: "" })),
  read: call("noteFindMany"),
  create: call("noteAdd"),
  update: call("noteUpdate", ({ id, title }) => ({ id: BigInt(id as number), title })),
  delete: call("noteDelete", ({ id }) => ({ id: BigInt(id as number) })),
  events: call("noteEvents"),
};

const shared = { module: "notes", neededProcedure: "noteEvents" };

export const lightconeNotesCase: WorkloadCase = {
  system: "lightcone",
  label: "Lightcone, TypeScript module",
  ops: sdkOps,
  definition: sdkDefinition({ key: "lightcone", ...shared, builder: () => LightconeConnection.builder() }),
};

export const spacetimedbNotesCase: WorkloadCase = {
  system: "spacetimedb",
  label: "npm client, TypeScript module",
  ops: sdkOps,
  definition: sdkDefinition({
    key: "spacetimedb",
    ...shared,
    builder: () => SpacetimedbConnection.builder(),
  }),
};

export const rustNotesCase: WorkloadCase = {
  system: "spacetimedb_rust",
  label: "npm client, Rust module",
  ops: sdkOps,
  definition: sdkDefinition({
    key: "spacetimedb_rust",
    ...shared,
    builder: () => SpacetimedbConnection.builder(),
  }),
};
