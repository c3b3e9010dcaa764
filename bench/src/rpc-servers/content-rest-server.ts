// The REST server of content-crud (section 16.2): Node's HTTP server and a plain driver. CONTENT_STORE is sqlite,
// postgres or memory.

import "dotenv/config";
import type { IncomingMessage, ServerResponse } from "node:http";
import { memoryContent } from "./content/memory";
import { postgresContent } from "./content/postgres";
import { sqliteContent } from "./content/sqlite";
import { type ContentStore, changeFrom, recordFrom } from "./content/store";
import { type Kept, keptInPostgres, keptInSqlite } from "./kept";
import { bodyOf, listen, portOfEnvironment, runAsProgram, servedOn, TooLarge } from "./node_rpc_server";
import { BadArguments, type RpcArguments } from "./rpc";

const poolMax = 10;
const bodyBytesMax = 1 << 20;

function openContent(kind: string): Kept<ContentStore> {
  if (kind === "sqlite") return keptInSqlite(sqliteContent);
  if (kind === "postgres") return keptInPostgres("content-rest", poolMax, postgresContent);
  if (kind !== "memory")
    throw new Error(`CONTENT_STORE is sqlite, postgres or memory, not ${JSON.stringify(kind)}`);
  return {
    store: memoryContent(),
    describe: () => ({
      ...{ isolation: "serializable", durability: "none: memory only", isDurable: false, poolMax: null },
      software: { server: `Node.js ${process.version}` },
    }),
    close: () => undefined,
  };
}

async function contentOf(request: IncomingMessage): Promise<RpcArguments> {
  const text = await bodyOf(request, bodyBytesMax);
  let body: unknown;
  try {
    body = JSON.parse(text);
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

async function answer({ store, describe }: Kept<ContentStore>, request: IncomingMessage): Promise<Reply> {
  const path = (request.url ?? "/").split("?")[0]!;
  const method = request.method ?? "GET";
  if (method === "GET" && path === "/describe") return { status: 200, body: await describe() };
  if (method === "POST" && path === "/content") {
    const record = recordFrom(await contentOf(request));
    await store.create(record);
    return { status: 201, body: record };
  }
  const id = /^\/content\/([^/]+)$/.exec(path)?.[1];
  if (id === undefined) return notFound;
  switch (method) {
    case "GET":
      return orNotFound(await store.read(id));
    case "PUT":
      return orNotFound(await store.update(id, changeFrom(await contentOf(request))));
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
  const kept = openContent(process.env["CONTENT_STORE"] ?? "sqlite");
  await kept.store.clear();
  return servedOn(kept, () =>
    listen("content REST server", portOfEnvironment(["CONTENT_PORT"], 8888), (request, response) => {
      const startedAt = performance.now();
      answer(kept, request)
        .catch(failure)
        .then((reply) => send(response, reply, startedAt));
    }),
  );
});
