// A connection to whatever has the RPC methods of the accounts of test-1: a server, or a database in front of which is none.

import {
  type Account,
  type CallArguments,
  type Connector,
  judgeTotals,
  VerificationFailure,
  type VerifyTotals,
} from "./connector";

/** How many balances one answer of the method `balances` has at most. */
const balancesPerRequest = 20_000;

export abstract class AccountsConnector implements Connector {
  constructor(
    readonly name: string,
    private readonly initialBalance: number,
    protected readonly isWorker: boolean,
    /** A server without `SEED_INITIAL_BALANCE` skips the verification: is that a failure? */
    private readonly skippedVerifyFails = true,
  ) {}

  abstract open(): Promise<void>;
  abstract close(): Promise<void>;
  abstract call(name: string, args?: CallArguments): Promise<unknown>;
  abstract createWorker(which: { index: number; total: number }): Promise<Connector>;

  async getAccount(id: number): Promise<Account | null> {
    const found = (await this.call("getAccount", { id })) as { id: number; balance: string } | null;
    return found === null || found === undefined ? null : { id: found.id, balance: BigInt(found.balance) };
  }

  async verify(): Promise<VerifyTotals> {
    if (this.isWorker) throw new VerificationFailure(`${this.name}: only the root connection verifies`);
    const answer = (await this.call("verify")) as
      | { skipped: true }
      | { accounts: string; total: string; changed: string };
    if ("skipped" in answer) {
      if (!this.skippedVerifyFails) return { accounts: 0n, total: 0n, changed: 0n };
      throw new VerificationFailure(
        `${this.name}: its server has no SEED_INITIAL_BALANCE and skipped the check`,
      );
    }
    const { accounts, total, changed } = answer;
    const totals = { accounts: BigInt(accounts), total: BigInt(total), changed: BigInt(changed) };
    return judgeTotals(totals, this.initialBalance);
  }

  async balances(): Promise<BigInt64Array> {
    const all: bigint[] = [];
    for (;;) {
      const page = (await this.call("balances", { from: all.length, count: balancesPerRequest })) as string[];
      for (const balance of page) all.push(BigInt(balance));
      if (page.length < balancesPerRequest) return BigInt64Array.from(all);
    }
  }
}
