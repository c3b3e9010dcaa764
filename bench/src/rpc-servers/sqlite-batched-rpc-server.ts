// SQLite with many requests per transaction, over HTTP and WebSocket (section 13).

import "dotenv/config";
import { WebSocketServer } from "ws";
import { accountMethods, transferArguments } from "./accounts";
import { status } from "./batched_frames";
import { serveBatchedSocket } from "./batched_sockets";
import { Batcher } from "./batcher";
import { portOfEnvironment, runAsProgram, servedOn, serveRpc } from "./node_rpc_server";
import type { RpcMethods } from "./rpc";
import { describeSqlite, openSqlite, sqliteAccounts } from "./sqlite";
import { sqliteStores, storeMethods } from "./stores";

const errors: Record<number, string> = {
  [status.missing]: "account_missing",
  [status.internal]: "internal error",
};

/**
 * The same methods, each of which waits for its turn in a batch. Their stores work synchronously, so that a method has
 * written everything when it returns, even where it returns a promise.
 */
const batched = (batcher: Batcher, methods: RpcMethods): RpcMethods =>
  Object.fromEntries(
    Object.entries(methods).map(([name, method]) => [name, (args) => batcher.run(() => method(args))]),
  );

runAsProgram(async () => {
  const database = openSqlite(process.env, { cache_size: -64_000 });
  const batchMax = Number(process.env["SQLITE_BATCH"] ?? 4000);
  if (!Number.isInteger(batchMax) || batchMax < 1) throw new Error("SQLITE_BATCH is a whole number above 0");
  const batcher = new Batcher(database, batchMax);
  const { ycsb, jobs } = sqliteStores(database);
  const batchedMethods = batched(batcher, storeMethods({ ycsb, jobs }));
  const { durability, ...described } = describeSqlite(database);
  const methods: RpcMethods = {
    // It decides by itself what does nothing.
    ...accountMethods(sqliteAccounts(database), () => false),
    ...batchedMethods,
    describe: () => ({ ...described, durability: `${durability}, batches`, roundTripsPerTx: 1, orm: "none" }),
    transfer: (args) =>
      new Promise((resolve, reject) => {
        const answer = (code: number) => {
          if (errors[code]) reject(new Error(errors[code]));
          else resolve({ applied: code === status.applied });
        };
        batcher.add({ ...transferArguments(args), answer });
      }),
  };
  return servedOn(database, async () => {
    const running = await serveRpc(
      { banner: "sqlite batched rpc server", methods },
      portOfEnvironment(["SQLITE_BATCHED_RPC_PORT"], 4107),
    );
    const sockets = new WebSocketServer({
      server: running.server,
      path: "/rpc-ws",
      perMessageDeflate: false,
    });
    sockets.on("connection", (socket) => serveBatchedSocket(socket, batcher, batchedMethods));
    return {
      async close() {
        for (const socket of sockets.clients) socket.terminate();
        await running.close();
      },
    };
  });
});
