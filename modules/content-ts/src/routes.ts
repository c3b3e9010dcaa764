// Content over HTTP, below `/v1/database/<name>/route`: /content and /content?id=<id>. The server makes the ids.

import {
  type HandlerContext,
  type Infer,
  type Request,
  Router,
  SyncResponse,
  type TransactionCtx,
} from "lightcone/server";
import spacetimedb, { content } from "./schema";

type Content = Infer<typeof content.rowType>;
type Change = Partial<Pick<Content, "title" | "body" | "author" | "status" | "data">>;

/** Answered with 400. */
class BadRequest extends Error {}

const json = (status: number, body: object) =>
  new SyncResponse(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });

const answerOf = (status: number, { id, title, body, author, status: state, data, ...times }: Content) =>
  json(status, {
    id,
    title,
    body,
    author: author ?? null,
    status: state ?? null,
    data: data === undefined ? null : JSON.parse(data),
    created_at: times.createdAt.toISOString(),
    updated_at: times.updatedAt.toISOString(),
  });

const notFound = () => json(404, { error: "not found" });

type Handler = (ctx: HandlerContext<typeof spacetimedb.schemaType>, request: Request) => SyncResponse;

const refusing = (handler: Handler) =>
  spacetimedb.httpHandler((ctx, request) => {
    try {
      return handler(ctx, request);
    } catch (error) {
      if (error instanceof BadRequest) return json(400, { error: error.message });
      throw error;
    }
  });

function idOf({ uri }: Request): string {
  const query = uri.slice(uri.indexOf("?") + 1);
  const id = uri.includes("?") ? query.split("&").find((part) => part.startsWith("id=")) : undefined;
  if (id === undefined || id === "id=") throw new BadRequest("id is needed: /content?id=<id>");
  // Ids have no character that must be escaped.
  return id.slice("id=".length);
}

function fieldsOf(request: Request): Record<string, unknown> {
  let body: unknown;
  try {
    body = request.json();
  } catch {
    throw new BadRequest("the body is no JSON");
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new BadRequest("the body is no JSON object");
  }
  return body as Record<string, unknown>;
}

/** What the body sets; null is as if left out. */
function changeOf(request: Request): Change {
  const fields = fieldsOf(request);
  const change: Change = {};
  for (const name of ["title", "body", "author", "status"] as const) {
    const value = fields[name] ?? undefined;
    if (value === undefined) continue;
    if (typeof value !== "string") throw new BadRequest(`${name} is no text`);
    change[name] = value;
  }
  const data = fields["data"] ?? undefined;
  if (data !== undefined) change.data = JSON.stringify(data);
  return change;
}

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const timeCharacters = 10;
const randomCharacters = 16;

/** 48 bits of milliseconds and 80 random bits. */
function ulid({ timestamp, random }: Pick<TransactionCtx<any>, "timestamp" | "random">): string {
  let time = "";
  let rest = Number(timestamp.toMillis());
  for (let character = 0; character < timeCharacters; character++) {
    time = alphabet[rest % 32]! + time;
    rest = Math.floor(rest / 32);
  }
  let text = "";
  for (const byte of random.fill(new Uint8Array(randomCharacters))) text += alphabet[byte & 31];
  return time + text;
}

export const postContent = refusing((ctx, request) => {
  const { title, body, author, status, data } = changeOf(request);
  if (title === undefined || body === undefined) throw new BadRequest("title and body are needed");
  const created = ctx.withTx((tx) => {
    // Random numbers come from the time: two calls of one microsecond have the same.
    let id = ulid(tx);
    while (tx.db.content.id.find(id) !== null) id = ulid(tx);
    const now = tx.timestamp;
    return tx.db.content.insert({ id, title, body, author, status, data, createdAt: now, updatedAt: now });
  });
  return answerOf(201, created);
});

export const getContent = refusing((ctx, request) => {
  const id = idOf(request);
  const record = ctx.withTx((tx) => tx.db.content.id.find(id));
  return record === null ? notFound() : answerOf(200, record);
});

export const putContent = refusing((ctx, request) => {
  const id = idOf(request);
  const change = changeOf(request);
  const changed = ctx.withTx((tx) => {
    const record = tx.db.content.id.find(id);
    return record === null ? null : tx.db.content.id.update({ ...record, ...change, updatedAt: tx.timestamp });
  });
  return changed === null ? notFound() : answerOf(200, changed);
});

export const deleteContent = refusing((ctx, request) => {
  const id = idOf(request);
  return ctx.withTx((tx) => tx.db.content.id.delete(id)) ? new SyncResponse("", { status: 204 }) : notFound();
});

export const routes = spacetimedb.httpRouter(
  new Router()
    .post("/content", postContent)
    .get("/content", getContent)
    .put("/content", putContent)
    .delete("/content", deleteContent),
);
