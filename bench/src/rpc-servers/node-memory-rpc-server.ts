// HTTP -> a Map, nothing on disk (section 13): the ceiling of the HTTP path, not a database.

import "dotenv/config";
import { type AccountStore, accountMethods } from "./accounts";
import { portOfEnvironment, runAsProgram, serveRpc } from "./node_rpc_server";
import { memoryYcsb } from "./ycsb/memory";
import { ycsbMethods } from "./ycsb/store";

const balances = new Map<number, number>();

const store: AccountStore = {
  find(id) {
    const balance = balances.get(id);
    return balance === undefined ? undefined : { id, balance };
  },
  balances: (from, count) =>
    Array.from(
      { length: Math.max(0, Math.min(balances.size - from, count)) },
      (_, i) => balances.get(from + i)!,
    ),
  totals(initialBalance) {
    const all = [...balances.values()].map(BigInt);
    return {
      accounts: all.length,
      total: all.reduce((sum, balance) => sum + balance, 0n),
      changed: all.filter((balance) => balance !== initialBalance).length,
    };
  },
  seed(accounts, initialBalance) {
    balances.clear();
    for (let id = 0; id < accounts; id++) balances.set(id, initialBalance);
  },
};

const methods = {
  ...accountMethods(store, ({ from, to, amount }) => {
    const source = balances.get(from);
    const destination = balances.get(to);
    if (source === undefined || destination === undefined) throw new Error("account_missing");
    if (source < amount) return false;
    balances.set(from, source - amount);
    balances.set(to, destination + amount);
    return true;
  }),
  ...ycsbMethods(memoryYcsb()),
  describe: () => ({
    isolation: "serializable",
    durability: "none: memory only",
    poolMax: null,
    roundTripsPerTx: 1,
    orm: "none",
    software: { server: `Node.js ${process.version}` },
  }),
};

runAsProgram(() =>
  serveRpc({ banner: "node memory rpc server", methods }, portOfEnvironment(["NODE_MEMORY_RPC_PORT"], 4105)),
);
