// The server side of the HTTP RPC format (section 9), independent of the HTTP server: Node and Bun share it.

/** Asynchronous or not: a database in this process answers at once. */
export type Answer<T> = T | Promise<T>;
export type RpcArguments = Record<string, unknown>;
export type RpcMethod = (args: RpcArguments) => unknown;
export type RpcMethods = Record<string, RpcMethod>;

export interface RpcService {
  /** Plain text of `GET /`. */
  banner: string;
  methods: RpcMethods;
  /** Sent in place of the text of errors thrown inside a method, which is logged then; without it the text is sent. */
  hiddenErrorText?: string;
}

export interface RpcReply {
  status: number;
  contentType: string;
  body: string;
}

/** Thrown for arguments that make no sense: its text is sent even where others are hidden. */
export class BadArguments extends Error {
  override readonly name = "BadArguments";
}

/** What an error begins with after which it is not known whether the operation took place. */
export const outcomeUnknownText = "outcome unknown";

/** Thrown when the connection to the database is lost: a transaction may be committed though its answer is not there. */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
  constructor(cause: unknown) {
    super(`${outcomeUnknownText}: the connection to the database was lost`, { cause });
  }
}

export const jsonReply = (status: number, value: unknown): RpcReply => ({
  status,
  contentType: "application/json",
  body: JSON.stringify(value),
});
const plain = (status: number, body: string): RpcReply => ({ status, contentType: "text/plain", body });

/** Answers every request that is not `POST /rpc`. */
export function answerOther(service: RpcService, method: string, path: string): RpcReply {
  return method === "GET" && path === "/" ? plain(200, service.banner) : plain(404, "not found");
}

/** Answers one `POST /rpc`. Never rejects. */
export async function answerRpc(service: RpcService, body: string): Promise<RpcReply> {
  let request: { name?: unknown; args?: unknown };
  try {
    request = JSON.parse(body) as typeof request;
    if (typeof request !== "object" || request === null) throw new Error("not an object");
  } catch {
    return jsonReply(400, { ok: false, error: "invalid json" });
  }
  if (typeof request.name !== "string" || request.name === "") {
    return jsonReply(500, { ok: false, error: "missing name" });
  }
  const method = Object.hasOwn(service.methods, request.name) ? service.methods[request.name] : undefined;
  if (!method) return jsonReply(500, { ok: false, error: `unknown method: ${request.name}` });
  try {
    const result = await method((request.args ?? {}) as RpcArguments);
    return jsonReply(200, result === undefined ? { ok: true } : { ok: true, result });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (
      service.hiddenErrorText === undefined ||
      error instanceof BadArguments ||
      error instanceof OutcomeUnknown
    ) {
      return jsonReply(500, { ok: false, error: message });
    }
    console.error(`${request.name}: ${error instanceof Error ? (error.stack ?? message) : message}`);
    return jsonReply(500, { ok: false, error: service.hiddenErrorText });
  }
}

/** A whole number from 0 on. */
export function whole(args: RpcArguments, name: string, most = Number.MAX_SAFE_INTEGER): number {
  const value = Number(args[name]);
  if (!Number.isSafeInteger(value) || value < 0 || value > most) throw new BadArguments(`invalid ${name}`);
  return value;
}

/** A text that is not empty. */
export function text(args: RpcArguments, name: string): string {
  const value = args[name];
  if (typeof value !== "string" || value === "") throw new BadArguments(`invalid ${name}`);
  return value;
}
