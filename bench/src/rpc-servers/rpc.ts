// The server side of the HTTP RPC format (section 9), independent of the HTTP server: Node and Bun share it.

export type RpcArguments = Record<string, unknown>;
export type RpcMethod = (args: RpcArguments) => unknown | Promise<unknown>;
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

/** What an error begins with after which nobody knows whether the operation took place. */
export const outcomeUnknownText = "outcome unknown";

/** Thrown when the connection to the database is lost: a transaction may be committed though its answer is not there. */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
  constructor(cause: unknown) {
    super(`${outcomeUnknownText}: the connection to the database was lost`, { cause });
  }
}

const json = (status: number, value: unknown): RpcReply => ({
  status,
  contentType: "application/json",
  body: JSON.stringify(value),
});
const text = (status: number, body: string): RpcReply => ({ status, contentType: "text/plain", body });

/** Answers every request that is not `POST /rpc`. */
export function answerOther(service: RpcService, method: string, path: string): RpcReply {
  return method === "GET" && path === "/" ? text(200, service.banner) : text(404, "not found");
}

/** Answers one `POST /rpc`. Never rejects. */
export async function answerRpc(service: RpcService, body: string): Promise<RpcReply> {
  let request: { name?: unknown; args?: unknown };
  try {
    request = JSON.parse(body) as typeof request;
    if (typeof request !== "object" || request === null) throw new Error("not an object");
  } catch {
    return json(400, { ok: false, error: "invalid json" });
  }
  if (typeof request.name !== "string" || request.name === "") {
    return json(500, { ok: false, error: "missing name" });
  }
  const method = Object.hasOwn(service.methods, request.name) ? service.methods[request.name] : undefined;
  if (!method) return json(500, { ok: false, error: `unknown method: ${request.name}` });
  try {
    const result = await method((request.args ?? {}) as RpcArguments);
    return json(200, result === undefined ? { ok: true } : { ok: true, result });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (
      service.hiddenErrorText === undefined ||
      error instanceof BadArguments ||
      error instanceof OutcomeUnknown
    ) {
      return json(500, { ok: false, error: message });
    }
    console.error(`${request.name}: ${error instanceof Error ? (error.stack ?? message) : message}`);
    return json(500, { ok: false, error: service.hiddenErrorText });
  }
}

export interface Transfer {
  from: number;
  to: number;
  amount: number;
}

/** The arguments of `transfer`, coerced as section 9 says. */
export function transferArguments(args: RpcArguments): Transfer {
  const from = Number(args["from_id"] ?? args["from"]);
  const to = Number(args["to_id"] ?? args["to"]);
  const amount = Number(args["amount"]);
  if (!Number.isInteger(from) || !Number.isInteger(to) || !Number.isFinite(amount)) {
    throw new BadArguments("invalid transfer args");
  }
  return { from, to, amount };
}

/** Whether a transfer does nothing and succeeds (section 4.6): then the system is not asked at all. */
export const isNoop = ({ from, to, amount }: Transfer): boolean => from === to || amount <= 0;

/** The id of `getAccount`. */
export function accountId(args: RpcArguments): number {
  const id = Number(args["id"]);
  if (!Number.isInteger(id)) throw new BadArguments("invalid id");
  return id;
}

/** The arguments of `seed`, with the environment where they are missing. */
export function seedArguments(args: RpcArguments): { accounts: number; initialBalance: number } {
  const number = (name: string, variable: string, fallback: number): number => {
    const value = Number(args[name] ?? process.env[variable] ?? fallback);
    if (!Number.isSafeInteger(value) || value < 0) throw new BadArguments(`invalid ${name}`);
    return value;
  };
  return {
    accounts: number("accounts", "SEED_ACCOUNTS", 100_000),
    initialBalance: number("initialBalance", "SEED_INITIAL_BALANCE", 1_000_000_000),
  };
}

/** The page of `balances` that is asked for: ids `from` to `from + count`, ascending. */
export function balancesArguments(args: RpcArguments): { from: number; count: number } {
  const from = Number(args["from"] ?? 0);
  const count = Number(args["count"] ?? 20_000);
  if (!Number.isInteger(from) || !Number.isInteger(count) || count < 1)
    throw new BadArguments("invalid page");
  return { from, count: Math.min(count, 20_000) };
}

/** The balance that `verify` compares with, or undefined if this server was started without it: then it is skipped. */
export function initialBalanceOfVerify(): bigint | undefined {
  const raw = process.env["SEED_INITIAL_BALANCE"];
  return raw === undefined || raw === "" ? undefined : BigInt(raw);
}

/** Rows that one INSERT of `seed` has. */
export const seedBatchRows = 10_000;
