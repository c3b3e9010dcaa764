// The credentials of a connection: a constant token, or a function that is called at each attempt; and refused tokens.

import { ClientError, toError } from "./client_error";

/** The argument of a function that was given to `withToken`. */
export interface TokenRequest {
  /** The token that the server has just refused: a token kept somewhere should not be this one. */
  refusedToken?: string;
}

type Token = string | null | undefined;

/** Asked for a token before each attempt to connect; nothing means a new anonymous identity. */
export type TokenSource = (request: TokenRequest) => Token | Promise<Token>;

/** Called when the server refuses the token: what it returns is used instead, nothing means a new identity. */
export type UnauthorizedHandler = (error: Error) => Token | Promise<Token>;

/** Refusals in a row after which the connection ends: trying further would only be a burden to the server. */
const REFUSALS_MAX = 3;

export class Credentials {
  /** The token of the next attempt, unless there is a source; after the greeting, the server's token for us. */
  current: string | undefined;
  readonly #source: TokenSource | undefined;
  readonly #onUnauthorized: UnauthorizedHandler | undefined;
  #refusal: Error | undefined;
  #refusals = 0;

  constructor(token: string | TokenSource | undefined, onUnauthorized: UnauthorizedHandler | undefined) {
    if (typeof token === "function") this.#source = token;
    else this.current = token || undefined;
    this.#onUnauthorized = onUnauthorized;
  }

  /** The token of the next attempt, which `signal` ends. */
  async next(signal: AbortSignal): Promise<string | undefined> {
    const refusal = this.#refusal;
    const refusedToken = refusal && this.current;
    let token: Token = this.current;
    try {
      if (this.#source) token = await this.#source({ refusedToken });
      else if (refusal) token = await this.#onUnauthorized?.(refusal);
    } catch (error) {
      throw new ClientError("LC0855", `the application has no token: ${toError(error).message}`, {
        cause: error,
      });
    }
    if (token && typeof token !== "string") {
      throw new ClientError("LC0855", `the application's token is not a string but ${typeof token}`);
    }
    // An answer that comes too late is not that of the attempt which runs now.
    if (signal.aborted) throw new ClientError("LC0831", "this token is no longer needed");
    this.#refusal = undefined;
    this.current = token || undefined;
    return this.current;
  }

  /** The server refused the token. Returns whether the next attempt may have another one. */
  refused(error: Error): boolean {
    this.#refusals += 1;
    if (this.#refusals > REFUSALS_MAX || !(this.#source || this.#onUnauthorized)) return false;
    this.#refusal = error;
    return true;
  }

  /** The server took it. A token of the server's own is for those who had none. */
  accepted(token: string): void {
    this.current ??= token;
    this.#refusals = 0;
  }
}
