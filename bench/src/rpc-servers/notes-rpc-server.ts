// The server of authed-load (section 19): notes in PostgreSQL or SQLite (NOTES_STORE), every request with a bearer token
// that is signed with NOTES_SECRET.

import "dotenv/config";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { postgresNotes } from "../workloads/data_layer/postgres";
import { sqliteNotes } from "../workloads/data_layer/sqlite";
import type { NoteStore } from "../workloads/data_layer/store";
import { verifyToken } from "./bearer";
import { runAsProgram } from "./node_rpc_server";
import { poolMaxOfEnvironment, portOfEnvironment } from "./postgres/methods";
import { describeDatabase, openPool } from "./postgres/pool";
import { answerRpc, BadArguments, type RpcArguments, type RpcReply, type RpcService } from "./rpc";
import { describeSqlite, openSqlite } from "./sqlite";

const defaultPort = 4109;
const bodyBytesMax = 1 << 20;

interface Kept {
  store: NoteStore;
  describe(): object | Promise<object>;
  close(): void | Promise<void>;
}

function openKept(kind: string): Kept {
  const server = `Node.js ${process.version}`;
  if (kind === "sqlite") {
    const database = openSqlite(process.env);
    return {
      store: sqliteNotes(database),
      describe: () => ({ ...describeSqlite(database), roundTripsPerTx: 0, orm: "none" }),
      close: () => {
        database.close();
      },
    };
  }
  const url = process.env["PG_URL"];
  if (kind !== "postgres" || !url) throw new Error("NOTES_STORE is sqlite, or postgres with PG_URL");
  const pool = openPool({ url, applicationName: "notes-rpc", poolMax: poolMaxOfEnvironment() });
  return {
    store: postgresNotes(pool),
    async describe() {
      const { version, roundTripMilliseconds: _, ...settings } = await describeDatabase(pool);
      const software = { database: version, server };
      return { ...settings, poolMax: pool.options.max, roundTripsPerTx: 4, orm: "none", software };
    },
    close: () => pool.end(),
  };
}

function whole(args: RpcArguments, name: string): number {
  const value = Number(args[name]);
  if (!Number.isSafeInteger(value) || value < 0) throw new BadArguments(`invalid ${name}`);
  return value;
}

const titleOf = (args: RpcArguments) => {
  if (typeof args["title"] !== "string") throw new BadArguments("invalid title");
  return args["title"];
};

const serviceOf = ({ store, describe }: Kept): RpcService => ({
  banner: "notes rpc server",
  hiddenErrorText: "internal server error",
  methods: {
    health: () => ({ status: "ok" }),
    describe,
    note_seed: (args) => store.seed(whole(args, "notes"), 0, ""),
    note_find_many: (args) => store.findMany(whole(args, "limit")),
    note_create: (args) => store.create(titleOf(args)),
    note_update: (args) => store.update(whole(args, "id"), titleOf(args)),
    note_delete: (args) => store.delete(whole(args, "id")),
    note_events: () => store.events(),
  },
});

/** Methods that say nothing about the data. */
const isOpen = (body: string) => body === '{"name":"health"}' || body === '{"name":"describe"}';

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new BadArguments(`a body of more than ${bodyBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

const refusal = (status: number, error: string): RpcReply => ({
  status,
  contentType: "application/json",
  body: JSON.stringify({ ok: false, error }),
});

async function answer(service: RpcService, secret: string, request: IncomingMessage): Promise<RpcReply> {
  if (request.method !== "POST" || request.url !== "/rpc") return refusal(404, "not found");
  const body = await bodyOf(request);
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  const user = token === undefined ? undefined : verifyToken(token, secret, Date.now());
  if (user === undefined && !isOpen(body)) return refusal(401, "a signed bearer token is needed");
  return answerRpc(service, body);
}

runAsProgram(async () => {
  const secret = process.env["NOTES_SECRET"];
  if (!secret) throw new Error("NOTES_SECRET is not set");
  const kept = openKept(process.env["NOTES_STORE"] ?? "");
  const service = serviceOf(kept);
  const server = createServer((request, response) => {
    answer(service, secret, request)
      .catch((error: unknown) => refusal(400, error instanceof Error ? error.message : String(error)))
      .then(({ status, contentType, body }) => {
        response.writeHead(status, {
          "content-type": contentType,
          "content-length": Buffer.byteLength(body),
        });
        response.end(body);
      });
  });
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(portOfEnvironment(["NOTES_RPC_PORT"], defaultPort), "127.0.0.1", resolve);
  });
  console.log(`${service.banner} listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return {
    async close() {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      await kept.close();
    },
  };
});
