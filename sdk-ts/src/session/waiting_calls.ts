// Calls from components. A call made before there is a connection waits for it.

import { type CallOptions, ClientError } from "../client";
import type { AnyConnection } from "../client/db_connection_impl";

/** Calls that wait; one more is rejected. */
const WAITING_CALLS_MAX = 10_000;

/** Calls now, or as soon as there is a connection. */
export class WaitingCalls {
  #connection: AnyConnection | null = null;
  readonly #waiting: ((connection: AnyConnection) => void)[] = [];

  /** There is another connection, or none any more. */
  use(connection: AnyConnection | null): void {
    this.#connection = connection;
    if (connection) for (const start of this.#waiting.splice(0)) start(connection);
  }

  /** A function that calls a reducer or a procedure with the limits of the moment. */
  to(
    kind: "reducers" | "procedures",
    { accessorName }: { readonly accessorName: string },
    limits: () => CallOptions | undefined,
  ): (...params: unknown[]) => Promise<any> {
    const start = (connection: AnyConnection, params: unknown): Promise<any> => {
      const options = limits();
      return (options ? connection.withOptions(options) : connection)[kind][accessorName]!(params);
    };
    return (params) => {
      if (this.#connection) return start(this.#connection, params);
      return new Promise((resolve, reject) => {
        if (this.#waiting.length === WAITING_CALLS_MAX)
          reject(new ClientError("LC0835", "too many calls wait"));
        else this.#waiting.push((connection) => start(connection, params).then(resolve, reject));
      });
    };
  }
}
