// The accounts of test-1 as a server keeps them, and their RPC methods (section 9).

import { type Answer, BadArguments, type RpcArguments, type RpcMethods } from "./rpc";

export interface Transfer {
  from: number;
  to: number;
  amount: number;
}

/** As text where a database answers so. */
type Amount = bigint | number | string;

export interface AccountStore {
  find(id: number): Answer<{ id: number; balance: Amount } | undefined>;
  /** Balances of up to `count` accounts from an id on, by id: for the check of each. */
  balances(from: number, count: number): Answer<Amount[]>;
  /** `changed` is the number of accounts whose balance is not the initial one. */
  totals(initialBalance: bigint): Answer<{ accounts: Amount; total: Amount; changed: Amount }>;
  /** Makes the table when it is not there, and fills it anew. */
  seed(accounts: number, initialBalance: number): Answer<void>;
}

/** Rows that one INSERT of `seed` has. */
export const seedBatchRows = 10_000;
const pageAccounts = 20_000;

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

/** The id of `getAccount`. */
export function accountId(args: RpcArguments): number {
  const id = Number(args["id"]);
  if (!Number.isInteger(id)) throw new BadArguments("invalid id");
  return id;
}

/** Whether a transfer does nothing and succeeds (section 4.6): then the system is not asked at all. */
export const isNoop = ({ from, to, amount }: Transfer): boolean => from === to || amount <= 0;

/** The balance that `verify` compares with; undefined if this server was started without it. */
function seededBalance(): bigint | undefined {
  const raw = process.env["SEED_INITIAL_BALANCE"];
  return raw === undefined || raw === "" ? undefined : BigInt(raw);
}

/** `transfer` answers whether it took place: it does not without funds. */
export function accountMethods(
  store: AccountStore,
  transfer: (transfer: Transfer) => Answer<boolean>,
  initialBalance = seededBalance(),
): RpcMethods {
  return {
    health: () => ({ status: "ok" }),
    async transfer(args) {
      const given = transferArguments(args);
      return { applied: !isNoop(given) && (await transfer(given)) };
    },
    async getAccount(args) {
      const id = accountId(args);
      const found = await store.find(id);
      return found ? { id, balance: String(found.balance) } : null;
    },
    async balances(args) {
      const from = Number(args["from"] ?? 0);
      const count = Number(args["count"] ?? pageAccounts);
      if (!Number.isInteger(from) || !Number.isInteger(count) || count < 1)
        throw new BadArguments("invalid page");
      return (await store.balances(from, Math.min(count, pageAccounts))).map(String);
    },
    async verify() {
      if (initialBalance === undefined) return { skipped: true };
      const { accounts, total, changed } = await store.totals(initialBalance);
      return { accounts: String(accounts), total: String(total), changed: String(changed) };
    },
    seed(args) {
      const number = (name: string, variable: string, fallback: number): number => {
        const value = Number(args[name] ?? process.env[variable] ?? fallback);
        if (!Number.isSafeInteger(value) || value < 0) throw new BadArguments(`invalid ${name}`);
        return value;
      };
      const initial = number("initialBalance", "SEED_INITIAL_BALANCE", 1_000_000_000);
      return store.seed(number("accounts", "SEED_ACCOUNTS", 100_000), initial);
    },
  };
}
