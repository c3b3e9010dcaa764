// Errors that come from the client itself, each with a stable code and a page that explains it.

/** Codes of the client, in the order of docs/errors/. */
export type ClientErrorCode =
  | "LC0831"
  | "LC0832"
  | "LC0833"
  | "LC0834"
  | "LC0835"
  | "LC0836"
  | "LC0837"
  | "LC0838"
  | "LC0840"
  | "LC0841"
  | "LC0842"
  | "LC0843"
  | "LC0844"
  | "LC0845"
  | "LC0847"
  | "LC0848"
  | "LC0849"
  | "LC0850"
  | "LC0851"
  | "LC0852"
  | "LC0853"
  | "LC0854"
  | "LC0855"
  | "LC0856"
  | "LC0857"
  | "LC0860";

const DOCS_URL = "https://github.com/lightcone-db/lightcone/blob/main/docs/errors/";

/**
 * An error that the client itself raises: a connection that cannot be opened, a call whose answer is lost, bytes that
 * cannot be decoded. Errors of a reducer are `SenderError` and `InternalError`.
 */
export class ClientError extends Error {
  /** Never changes its meaning; the page of that name explains it. */
  readonly code: ClientErrorCode;
  /** How long the server asks to wait before another attempt, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  /** The message ends with the code, unless it is a text of the server. */
  constructor(
    code: ClientErrorCode,
    message: string,
    options?: { cause?: unknown; isServerText?: boolean; retryAfterMs?: number },
  ) {
    super(
      options?.isServerText ? message : `${message} [${code}]`,
      options?.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.retryAfterMs = options?.retryAfterMs;
  }

  override get name(): string {
    return "ClientError";
  }

  /** Address of the page about this error. */
  get docsUrl(): string {
    return `${DOCS_URL}${this.code}.md`;
  }
}

/** The bindings are older than the module. */
export function noSuchTable(name: string): ClientError {
  return new ClientError("LC0841", `the bindings have no table ${name}; generate them again`);
}

/** A thrown value, or that of an error event, as an `Error`. */
export function toError(value: unknown): Error {
  if (value instanceof Error) return value;
  if (typeof value === "object" && value !== null) {
    const { error, message } = value as { error?: unknown; message?: unknown };
    if (error instanceof Error) return error;
    if (typeof message === "string" && message !== "") return new Error(message);
  }
  return new Error(typeof value === "string" && value !== "" ? value : "unknown error");
}
