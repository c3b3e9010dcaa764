// What the suite knows of a system under test: one connection to it (section 5.1), and the definition that prepares it.

import type { Config } from "../config";
import type { PrepareContext, Prepared } from "../init/prepare";

export interface Account {
  id: number;
  balance: bigint;
}

/** What a verification counted; `changed` is the number of accounts whose balance is not the initial one. */
export interface VerifyTotals {
  accounts: bigint;
  total: bigint;
  changed: bigint;
}

/** A positive acknowledgement. `applied: false` says that the system did nothing, e.g. for lack of funds. */
export interface CallResult {
  applied?: boolean;
  [field: string]: unknown;
}

/** The arguments of one call, by name. */
export type CallArguments = Record<string, unknown>;

/** One connection to a system. The root has one, and each worker its own, made by `createWorker`. */
export interface Connector {
  readonly name: string;
  /** Connects, or asks for the health. The root gets the number of workers. */
  open(workers?: number): Promise<void>;
  close(): Promise<void>;
  getAccount(id: number): Promise<Account | null>;
  /** Resolves if the balances are right (section 5.8), else rejects with a `VerificationFailure`. Workers reject. */
  verify(): Promise<VerifyTotals>;
  /** All balances, by id: for the strict check. */
  balances?(): Promise<BigInt64Array>;
  call(name: string, args?: CallArguments): Promise<unknown>;
  /** An opened connection for one worker. */
  createWorker?(which: { index: number; total: number }): Promise<Connector>;
}

/** Systems of different classes never share a table column (section 12, claim 2). */
export type SystemClass = "full-stack" | "database-direct" | "client-cache" | "not-durable";

/** What a reader must know to compare two rows (section 6.1). Read from the running system where it can be. */
export interface Fairness {
  systemClass: SystemClass;
  isolation: string;
  durability: string;
  /** Size of the pool in front of the database; null where there is none. */
  poolMax: number | null;
  transport: string;
  orm: string;
  clientLanguage: string;
  colocated: boolean;
  roundTripsPerTx: number;
}

/** How the native load generator (crates/loadgen) reaches a system. */
export interface NativeTarget {
  /** Its `--target`. */
  kind: "websocket" | "spacetime-http" | "rpc" | "batched" | "postgres" | "convex";
  url: string;
  /** Further arguments. */
  arguments?: string[];
  /** Connections that the system allows; more in flight then share one. */
  connectionsMax?: number;
  roundTripsPerTx?: number;
}

/** One row of the registry: how to prepare a system and how to connect to it. */
export interface ConnectorDefinition {
  readonly key: string;
  /** What a person has to start when the suite cannot: printed after "not running: start it with". */
  readonly startCommand: string;
  /** Makes the system ready, seeded for `context.test`; rejects with `NotRunning` where that cannot be done. */
  prepare(context: PrepareContext): Promise<Prepared>;
  /** A fresh connector, not yet open, of what `prepare` answered. */
  create(config: Config, prepared: Prepared): Connector;
  /** Where the native load generator finds what `prepare` answered; without it, it does not speak its protocol. */
  nativeTarget?(config: Config, prepared: Prepared): NativeTarget;
}

/** The service is not there and the suite cannot start it: exit code 3 if it was asked for by name (section 10.9). */
export class NotRunning extends Error {
  override readonly name = "NotRunning";
}

/** The system answered that it did nothing: the outcome is known. Other errors leave it open (section 5.8). */
export class Refused extends Error {
  override readonly name = "Refused";
}

/** Errors of the SDKs that carry the answer of a reducer. */
const answersOfReducers = new Set(["SenderError", "InternalError"]);

export const isRefusal = (error: unknown): boolean =>
  error instanceof Refused || (error instanceof Error && answersOfReducers.has(error.name));

export class VerificationFailure extends Error {
  override readonly name = "VerificationFailure";
  constructor(
    message: string,
    readonly totals?: VerifyTotals,
  ) {
    super(message);
  }
}

/** The judgement of section 5.8, the same for every system. */
export function judgeTotals(totals: VerifyTotals, initialBalance: number): VerifyTotals {
  const expected = BigInt(initialBalance) * totals.accounts;
  if (totals.accounts === 0n) throw new VerificationFailure("there are no accounts", totals);
  if (totals.total !== expected) {
    throw new VerificationFailure(`the balances add up to ${totals.total}, not to ${expected}`, totals);
  }
  if (totals.changed === 0n) throw new VerificationFailure("no balance has changed", totals);
  return totals;
}
