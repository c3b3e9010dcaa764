// The strict check (section 5.8): what the acknowledged transfers must have made of every account.

import type { LedgerVerdict } from "../../core/result";

export class Ledger {
  readonly #delta: Float64Array;
  readonly #unknown: Uint32Array;
  #unknownOperations = 0;

  constructor(private readonly baseline: BigInt64Array) {
    this.#delta = new Float64Array(baseline.length);
    this.#unknown = new Uint32Array(baseline.length);
  }

  acknowledged(from: number, to: number, amount: number): void {
    this.#delta[from]! -= amount;
    this.#delta[to]! += amount;
  }

  /** A transfer that timed out or whose connection was lost: it may have happened, or not. */
  outcomeUnknown(from: number, to: number): void {
    this.#unknown[from]!++;
    this.#unknown[to]!++;
    this.#unknownOperations++;
  }

  /** Transfers move 1 each: an account may be off by as many as there are transfers with unknown outcome. */
  check(balances: BigInt64Array): LedgerVerdict {
    const unknownOperations = this.#unknownOperations;
    if (balances.length !== this.baseline.length) {
      const message = `${balances.length} accounts after the run, ${this.baseline.length} before it`;
      return { ok: false, wrongAccounts: 0, unknownOperations, message };
    }
    let wrongAccounts = 0;
    let first = "";
    for (let id = 0; id < balances.length; id++) {
      const expected = this.baseline[id]! + BigInt(this.#delta[id]!);
      const off = balances[id]! - expected;
      if ((off < 0n ? -off : off) <= BigInt(this.#unknown[id]!)) continue;
      if (wrongAccounts++ === 0) {
        first = `; account ${id} has ${balances[id]} instead of ${expected}, ${this.#unknown[id]} outcomes unknown`;
      }
    }
    const message =
      wrongAccounts === 0
        ? `every account is right, ${unknownOperations} outcomes unknown`
        : `${wrongAccounts} accounts are wrong${first}`;
    return { ok: wrongAccounts === 0, wrongAccounts, unknownOperations, message };
  }
}
