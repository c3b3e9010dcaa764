// SQLite with many transfers per transaction (section 13): requests queue up while one batch is written and synced, and the
// next batch takes all that came meanwhile.

import "dotenv/config";
import { type WebSocket, WebSocketServer } from "ws";
import { answerBytes, readRequests, status, writeAnswer } from "./batched_frames";
import { runAsProgram, serveRpc } from "./node_rpc_server";
import { isNoop, type RpcService, type Transfer, transferArguments } from "./rpc";
import { describeSqlite, openSqlite, type SqliteDatabase, sqliteMethods } from "./sqlite";

interface Queued extends Transfer {
  answer(status: number): void;
}

/** Transfers that wait for a batch; a client that sends faster gets status 255. */
const queueMax = 1_000_000;

class Batcher {
  #queue: Queued[] = [];
  #isScheduled = false;
  readonly #flushes = new Set<() => void>();
  readonly #apply: (batch: readonly Queued[]) => Uint8Array;

  constructor(
    database: SqliteDatabase,
    private readonly batchMax: number,
  ) {
    const balanceOf = database.prepare("SELECT balance FROM accounts WHERE id = ?").pluck();
    const setBalance = database.prepare("UPDATE accounts SET balance = ? WHERE id = ?");
    const transfer = ({ from, to, amount }: Transfer): number => {
      if (isNoop({ from, to, amount })) return status.invalid;
      const source = balanceOf.get(from) as number | undefined;
      const destination = balanceOf.get(to) as number | undefined;
      if (source === undefined || destination === undefined) return status.missing;
      if (source < amount) return status.insufficient;
      setBalance.run(source - amount, from);
      setBalance.run(destination + amount, to);
      return status.applied;
    };
    const transaction = database.transaction((batch: readonly Queued[]) => Uint8Array.from(batch, transfer));
    this.#apply = (batch) => transaction.immediate(batch);
  }

  add(queued: Queued): void {
    if (this.#queue.length >= queueMax) queued.answer(status.internal);
    else this.#queue.push(queued);
    this.#schedule();
  }

  /** Called once after the batch that is being answered, e.g. to send what was gathered. */
  afterAnswers(flush: () => void): void {
    this.#flushes.add(flush);
  }

  #schedule(): void {
    if (this.#isScheduled || this.#queue.length === 0) return;
    this.#isScheduled = true;
    // After all sockets that have something to read were read.
    setImmediate(() => this.#drain());
  }

  #drain(): void {
    this.#isScheduled = false;
    const batch = this.#queue.splice(0, this.batchMax);
    try {
      const answers = this.#apply(batch);
      for (const [i, queued] of batch.entries()) queued.answer(answers[i]!);
    } catch (error) {
      // Nothing of the batch was committed.
      console.error(error);
      for (const queued of batch) queued.answer(status.internal);
    }
    for (const flush of this.#flushes) flush();
    this.#flushes.clear();
    this.#schedule();
  }
}

/** Answers of one socket, gathered until the batch is over. */
class SocketAnswers {
  #pairs: number[] = [];
  constructor(private readonly socket: WebSocket) {}

  add(id: number, answer: number): void {
    this.#pairs.push(id, answer);
  }

  readonly flush = () => {
    const count = this.#pairs.length / 2;
    const frame = new Uint8Array(count * answerBytes);
    const view = new DataView(frame.buffer);
    for (let i = 0; i < count; i++)
      writeAnswer(view, i * answerBytes, this.#pairs[2 * i]!, this.#pairs[2 * i + 1]!);
    this.#pairs = [];
    if (this.socket.readyState === this.socket.OPEN) this.socket.send(frame);
  };
}

const errors: Record<number, string> = {
  [status.missing]: "account_missing",
  [status.internal]: "internal error",
};

runAsProgram(async () => {
  const database = openSqlite(process.env, { cache_size: -64_000 });
  const batchMax = Number(process.env["SQLITE_BATCH"] ?? 4000);
  if (!Number.isInteger(batchMax) || batchMax < 1) throw new Error("SQLITE_BATCH is a whole number above 0");
  const batcher = new Batcher(database, batchMax);

  const service: RpcService = {
    banner: "sqlite batched rpc server",
    methods: {
      ...sqliteMethods(database),
      describe: () => {
        const described = describeSqlite(database);
        return {
          ...described,
          durability: `${described.durability}, batches`,
          roundTripsPerTx: 1,
          orm: "none",
        };
      },
      transfer: (args) =>
        new Promise((resolve, reject) => {
          const answer = (code: number) => {
            if (errors[code]) reject(new Error(errors[code]));
            else resolve({ applied: code === status.applied });
          };
          batcher.add({ ...transferArguments(args), answer });
        }),
    },
  };
  const running = await serveRpc(service, Number(process.env["SQLITE_BATCHED_RPC_PORT"] ?? 4107));
  const sockets = new WebSocketServer({ server: running.server, path: "/rpc-ws", perMessageDeflate: false });
  sockets.on("connection", (socket) => {
    const answers = new SocketAnswers(socket);
    socket.on("error", () => socket.terminate());
    socket.on("message", (data, isBinary) => {
      const requests = isBinary ? readRequests(data as Buffer) : undefined;
      if (!requests) return socket.close(1003, "frames of 20-byte records only");
      for (const { id, from, to, amount } of requests) {
        const answer = (code: number) => {
          answers.add(id, code);
          batcher.afterAnswers(answers.flush);
        };
        batcher.add({ from, to, amount, answer });
      }
    });
  });
  return {
    close: async () => {
      for (const socket of sockets.clients) socket.terminate();
      await running.close();
      database.close();
    },
  };
});
