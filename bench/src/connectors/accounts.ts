// How connections read the accounts of test-1 (section 5.8).

import { type Connector, judgeTotals, totalsOf, VerificationFailure, type VerifyTotals } from "./connector";

/** How many balances one answer of the method `balances` has at most. */
const balancesPerRequest = 20_000;

interface Reader {
  name: string;
  initialBalance: number;
  isWorker: boolean;
}

function onlyRoot({ name, isWorker }: Reader): void {
  if (isWorker) throw new VerificationFailure(`${name}: only the root connection verifies`);
}

/** Adds up all balances. */
export async function verifiedByBalances(
  reader: Reader,
  balances: () => Promise<BigInt64Array>,
): Promise<VerifyTotals> {
  onlyRoot(reader);
  return judgeTotals(totalsOf(await balances(), reader.initialBalance), reader.initialBalance);
}

/**
 * By the RPC methods: of a server, or of a database without one. A server without `SEED_INITIAL_BALANCE` skips the verification:
 * is that a failure?
 */
export function accountsByMethods(
  reader: Reader,
  call: Connector["call"],
  skippedVerifyFails = true,
): Pick<Connector, "getAccount" | "verify" | "balances"> {
  return {
    async getAccount(id) {
      const found = (await call("getAccount", { id })) as { id: number; balance: string } | null;
      return found === null || found === undefined ? null : { id: found.id, balance: BigInt(found.balance) };
    },
    async verify() {
      onlyRoot(reader);
      const answer = (await call("verify")) as
        | { skipped: true }
        | { accounts: string; total: string; changed: string };
      if ("skipped" in answer) {
        if (!skippedVerifyFails) return { accounts: 0n, total: 0n, changed: 0n };
        throw new VerificationFailure(
          `${reader.name}: its server has no SEED_INITIAL_BALANCE and skipped the check`,
        );
      }
      const { accounts, total, changed } = answer;
      const totals = { accounts: BigInt(accounts), total: BigInt(total), changed: BigInt(changed) };
      return judgeTotals(totals, reader.initialBalance);
    },
    async balances() {
      const all: bigint[] = [];
      for (;;) {
        const page = (await call("balances", { from: all.length, count: balancesPerRequest })) as string[];
        for (const balance of page) all.push(BigInt(balance));
        if (page.length < balancesPerRequest) return BigInt64Array.from(all);
      }
    },
  };
}
