// What the suite knows of a system under test: one connection to it (section 5.1), and what a reader must know of it.

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

/** The arguments of one call, by name. */
export type CallArguments = Record<string, unknown>;

/** One connection to a system. The root has one, and each worker its own, made by `createWorker`. */
export interface Connector {
  readonly name: string;
  /** Connects, or asks for the health. The root gets the number of workers. */
  open(workers?: number): Promise<void>;
  close(): Promise<void>;
  /** Calls a function of the system by its name. */
  call(name: string, args?: CallArguments): Promise<unknown>;
  /** Of systems with the accounts of test-1, as `verify` and `balances`. */
  getAccount?(id: number): Promise<Account | null>;
  /** Resolves if the balances are right (section 5.8), else rejects with a `VerificationFailure`. Workers reject. */
  verify?(): Promise<VerifyTotals>;
  /** All balances, by id: for the strict check. */
  balances?(): Promise<BigInt64Array>;
  /** An opened connection for one worker. */
  createWorker?(which: { index: number; total: number }): Promise<Connector>;
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

export function totalsOf(balances: Iterable<bigint>, initialBalance: number): VerifyTotals {
  const initial = BigInt(initialBalance);
  const totals = { accounts: 0n, total: 0n, changed: 0n };
  for (const balance of balances) {
    totals.accounts++;
    totals.total += balance;
    if (balance !== initial) totals.changed++;
  }
  return totals;
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
