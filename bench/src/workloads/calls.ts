// Operations that ask a connection for a function. Its name is that of the RPC method, whatever the system: connectors know
// what theirs is called.

import type { CallArguments, Connector } from "../connectors/connector";
import type { Outcome, RunOperation } from "./workload";

/** What is made of an answer. */
export type Judge = (answer: unknown, args: CallArguments) => Outcome;

export const done: Judge = () => ({ ok: true });
export const found: Judge = (answer) => ({ ok: true, found: answer });
/** What is not there is a miss. */
export const one: Judge = (answer) => ({
  ok: true,
  miss: answer === null || answer === undefined,
  found: answer,
});
export const many: Judge = (rows) => ({
  ok: Array.isArray(rows),
  miss: (rows as unknown[]).length === 0,
  found: rows,
});
/** Looks at the answer: a wrong one is a failure. */
export const right =
  <Answer>(what: string, isRight: (answer: Answer, args: CallArguments) => boolean): Judge =>
  (answer, args) => {
    if (!isRight(answer as Answer, args)) throw new Error(`the answer is wrong: ${what}`);
    return { ok: true };
  };

/** Asks for a function; the answer need not be a promise. */
export type Ask = (name: string, args: CallArguments) => unknown;

/** Makes operations that ask in this way. */
export const callsBy =
  (askOf: (connection: Connector) => Ask) =>
  (name: string, judge: Judge = done, argumentsOf?: (args: CallArguments) => CallArguments): RunOperation =>
  async (connection, args) =>
    judge(await askOf(connection)(name, argumentsOf ? argumentsOf(args) : args), args);

/** Asks the connection as it is. */
export const connectionItself =
  (connection: Connector): Ask =>
  (name, args) =>
    connection.call(name, args);

export const call = callsBy(connectionItself);

/** What belongs to a connection, made at its first use. */
export function perConnection<T>(make: (connection: Connector) => T): (connection: Connector) => T {
  const made = new WeakMap<Connector, T>();
  return (connection) => {
    let own = made.get(connection);
    if (own === undefined) made.set(connection, (own = make(connection)));
    return own;
  };
}
