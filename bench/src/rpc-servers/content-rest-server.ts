// The REST server of content-crud (section 16.2): Node's HTTP server and a plain driver. CONTENT_STORE is sqlite,
// postgres or memory.

import "dotenv/config";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { memoryStore } from "./content/memory_store";
import { postgresStore } from "./content/postgres_store";
import { sqliteStore } from "./content/sqlite_store";
import { type ContentStore, changeFrom, recordFrom } from "./content/store";
import { runAsProgram } from "./node_rpc_server";
import { portOfEnvironment } from "./postgres/methods";
import { describeDatabase, openPool } from "./postgres/pool";
import { BadArguments, type RpcArguments } from "./rpc";
import { describeSqlite, openSqlite } from "./sqlite";

const defaultPort = 8888;
const poolMax = 10;
const bodyBytesMax = 1 << 20;

interface Kept {
  store: ContentStore;
  /** Answered to `GET /describe`. */
  describe(): object | Promise<object>;
  close(): void | Promise<void>;
}

function openKept(kind: string): Kept {
  switch (kind) {
    case "memory":
      return {
        store: memoryStore(),
        describe: () => ({
          isolation: "serializable",
          durability: "none: memory only",
          isDurable: false,
          poolMax: null,
        }),
        close: () => undefined,
      };
    case "sqlite": {
      const database = openSqlite(process.env);
      return {
        store: sqliteStore(database),
        describe: () => describeSqlite(database),
        close: () => {
          database.close();
        },
      };
    }
    case "postgres": {
      const url = process.env["PG_URL"];
      if (!url) throw new Error("PG_URL is not set");
      const pool = openPool({ url, applicationName: "content-rest", poolMax });
      return {
        store: postgresStore(pool),
        async describe() {
          const { version, roundTripMilliseconds, ...settings } = await describeDatabase(pool);
          const databaseRoundTrip = `${roundTripMilliseconds} ms`;
          return { ...settings, poolMax, software: { database: version, databaseRoundTrip } };
        },
        close: () => pool.end(),
      };
    }
    default:
      throw new Error(`CONTENT_STORE is sqlite, postgres or memory, not ${JSON.stringify(kind)}`);
  }
}

class TooLarge extends Error {}

async function bodyOf(request: IncomingMessage): Promise<RpcArguments> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new TooLarge(`a body of more than ${bodyBytesMax} bytes`);
    chunks.push(chunk);
  }
  let body: unknown;
  try {
    body = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    throw new BadArguments("invalid json");
  }
  if (typeof body !== "object" || body === null) throw new BadArguments("invalid json");
  return body as RpcArguments;
}

interface Reply {
  status: number;
  body?: unknown;
}

const notFound: Reply = { status: 404, body: { error: "not found" } };
const orNotFound = (record: unknown): Reply =>
  record === undefined ? notFound : { status: 200, body: record };

async function answer({ store, describe }: Kept, request: IncomingMessage): Promise<Reply> {
  const path = (request.url ?? "/").split("?")[0]!;
  const method = request.method ?? "GET";
  if (method === "GET" && path === "/describe") return { status: 200, body: await describe() };
  if (method === "POST" && path === "/content") {
    const record = recordFrom(await bodyOf(request));
    await store.create(record);
    return { status: 201, body: record };
  }
  const id = /^\/content\/([^/]+)$/.exec(path)?.[1];
  if (id === undefined) return notFound;
  switch (method) {
    case "GET":
      return orNotFound(await store.read(id));
    case "PUT":
      return orNotFound(await store.update(id, changeFrom(await bodyOf(request))));
    case "DELETE":
      return (await store.delete(id)) ? { status: 204 } : notFound;
    default:
      return { status: 405, body: { error: "method not allowed" } };
  }
}

function failure(error: unknown): Reply {
  if (error instanceof BadArguments) return { status: 400, body: { error: error.message } };
  if (error instanceof TooLarge) return { status: 413, body: { error: error.message } };
  console.error(error);
  return { status: 500, body: { error: "internal server error" } };
}

function send(response: ServerResponse, { status, body }: Reply, startedAt: number): void {
  const text = body === undefined ? "" : JSON.stringify(body);
  response.writeHead(status, {
    ...(body !== undefined && { "content-type": "application/json" }),
    "content-length": Buffer.byteLength(text),
    "server-timing": `total;dur=${(performance.now() - startedAt).toFixed(3)}`,
  });
  response.end(text);
}

runAsProgram(async () => {
  const kept = openKept(process.env["CONTENT_STORE"] ?? "sqlite");
  await kept.store.clear();
  const server = createServer((request, response) => {
    const startedAt = performance.now();
    answer(kept, request)
      .catch(failure)
      .then((reply) => send(response, reply, startedAt));
  });
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(portOfEnvironment(["CONTENT_PORT"], defaultPort), "127.0.0.1", resolve);
  });
  console.log(`content REST server listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
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
