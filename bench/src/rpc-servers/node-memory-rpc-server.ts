// HTTP -> a Map, nothing on disk (section 13): the ceiling of the HTTP path, not a database.

import "dotenv/config";
import { memoryYcsb } from "./memory_ycsb";
import { runAsProgram, serveRpc } from "./node_rpc_server";
import {
  accountId,
  balancesArguments,
  initialBalanceOfVerify,
  isNoop,
  type RpcService,
  seedArguments,
  transferArguments,
} from "./rpc";
import { ycsbMethods } from "./ycsb_methods";

runAsProgram(() => {
  const balances = new Map<number, number>();

  const service: RpcService = {
    banner: "node memory rpc server",
    methods: {
      health: () => ({ status: "ok" }),
      ...ycsbMethods(memoryYcsb()),
      describe: () => ({
        isolation: "serializable",
        durability: "none: memory only",
        poolMax: null,
        roundTripsPerTx: 1,
        orm: "none",
        software: { server: `Node.js ${process.version}` },
      }),
      transfer: (args) => {
        const transfer = transferArguments(args);
        if (isNoop(transfer)) return { applied: false };
        const { from, to, amount } = transfer;
        const source = balances.get(from);
        const destination = balances.get(to);
        if (source === undefined || destination === undefined) throw new Error("account_missing");
        if (source < amount) return { applied: false };
        balances.set(from, source - amount);
        balances.set(to, destination + amount);
        return { applied: true };
      },
      getAccount: (args) => {
        const id = accountId(args);
        const balance = balances.get(id);
        return balance === undefined ? null : { id, balance: String(balance) };
      },
      balances: (args) => {
        const { from, count } = balancesArguments(args);
        const end = Math.min(balances.size, from + count);
        const page: string[] = [];
        for (let id = from; id < end; id++) page.push(String(balances.get(id)));
        return page;
      },
      verify: () => {
        const initialBalance = initialBalanceOfVerify();
        if (initialBalance === undefined) return { skipped: true };
        let total = 0n;
        let changed = 0;
        for (const balance of balances.values()) {
          total += BigInt(balance);
          if (BigInt(balance) !== initialBalance) changed++;
        }
        return { accounts: String(balances.size), total: String(total), changed: String(changed) };
      },
      seed: (args) => {
        const { accounts, initialBalance } = seedArguments(args);
        balances.clear();
        for (let id = 0; id < accounts; id++) balances.set(id, initialBalance);
      },
    },
  };
  return serveRpc(service, Number(process.env["NODE_MEMORY_RPC_PORT"] ?? 4105));
});
