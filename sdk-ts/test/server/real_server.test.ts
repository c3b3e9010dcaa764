// The client on a real server: compression, one-off queries, and a server that goes away and comes back.
// `npm run test:server`; LIGHTCONE_BIN names the `spacetime` to test, as for tests/e2e/run.sh.

import { afterAll, beforeAll, expect, test } from "vitest";
import { Server, until, wasm } from "../../../tests/e2e/src/server";
import type { ClientError, ReconnectingInfo } from "../../src/client";
import { OrderedSocket, openWebSocket } from "../../src/client/socket";
import { Bank, connected, subscribed } from "./support";

let server: Server;

beforeAll(async () => {
  // Not the default of the server, as the published package would lose the order of messages.
  server = await Server.start('[websocket]\ncompression = "as-asked"\n');
  await server.publish("bank", wasm("transfer"));
});
afterAll(() => server?.stop());

const builder = () => Bank.builder().withUri(server.url).withDatabaseName("bank");
const total = (connection: Bank): bigint =>
  [...connection.db.accounts.iter()].reduce((sum, { balance }) => sum + balance, 0n);

test.each(["gzip", "brotli", "none"] as const)(
  "compression %s: rows and updates in order",
  async (compression) => {
    const tags = new Set<number>();
    const connection = await connected(
      builder()
        .withCompression(compression)
        .withWSFn(async (args) => {
          const socket = await openWebSocket(args);
          const ordered = new OrderedSocket(socket);
          const deliver = socket.onmessage!;
          socket.onmessage = (event) => {
            tags.add(new Uint8Array(event.data)[0]!);
            deliver.call(socket, event);
          };
          return ordered;
        }),
    );
    const other = await connected(builder());
    await connection.reducers.seed({ n: 20_000, initialBalance: 100n });
    const applied = subscribed(connection, "SELECT * FROM accounts");
    // Updates follow the large result closely.
    const transfers = Array.from({ length: 200 }, (_, i) =>
      other.reducers.transfer({ from: i, to: i + 1, amount: 1n }),
    );
    await Promise.all([applied, ...transfers]);
    await until("all updates are here", () => connection.db.accounts.id.find(200)?.balance === 101n);
    expect(connection.db.accounts.count()).toBe(20_000n);
    expect(connection.db.accounts.id.find(0)?.balance).toBe(99n);
    expect(connection.db.accounts.id.find(100)?.balance).toBe(100n);
    expect(total(connection)).toBe(2_000_000n);
    expect([...tags].filter((tag) => tag !== 0)).toEqual({ gzip: [2], brotli: [1], none: [] }[compression]);
    connection.disconnect();
    other.disconnect();
  },
);

test("a one-off query", async () => {
  const connection = await connected(builder());
  await connection.reducers.seed({ n: 5, initialBalance: 7n });
  const rows = await connection.oneOffQuery("SELECT * FROM accounts WHERE id = 3");
  expect(rows).toEqual([{ id: 3, balance: 7n }]);
  await expect(connection.oneOffQuery("SELECT * FROM nothing")).rejects.toMatchObject({ code: "LC0836" });
  expect(connection.db.accounts.count()).toBe(0n);
  connection.disconnect();
});

test("a refused token is not tried again", async () => {
  const refused = connected(builder().withToken("nonsense").withReconnect());
  await expect(refused).rejects.toMatchObject({ code: "LC0832" });
});

test("a refused token is replaced where the application has another, or wants none", async () => {
  const first = await connected(builder());
  const token = first.token!;
  const other = await connected(
    builder()
      .withToken("nonsense")
      .onUnauthorized(() => token),
  );
  expect(other.identity!.toHexString()).toBe(first.identity!.toHexString());
  const anonymous = await connected(
    builder()
      .withToken("nonsense")
      .onUnauthorized(() => undefined),
  );
  expect(anonymous.identity!.toHexString()).not.toBe(first.identity!.toHexString());
  for (const connection of [first, other, anonymous]) connection.disconnect();
});

test("a server that hangs: the silence is noticed, attempts have their time, and it is back when the server is", async () => {
  const reasons: unknown[] = [];
  let probes = 0;
  const connection = await connected(
    builder()
      .withKeepAlive({ idleMs: 150, timeoutMs: 1500 })
      .withConnectTimeout(1000)
      .withReconnect({ baseDelayMs: 20, maxDelayMs: 200 })
      .withWSFn(async (args) => {
        const socket = await OrderedSocket.open(args);
        const { send } = socket;
        // An unsubscribe is the question after a silence.
        socket.send = (bytes) => {
          if (bytes[0] === 1) probes += 1;
          send.call(socket, bytes);
        };
        return socket;
      })
      .onReconnecting((_, { error }) => reasons.push((error as ClientError).code)),
  );
  // An idle connection is asked again and again, and stays.
  await until("questions", () => probes > 3);
  expect(connection.isActive).toBe(true);
  expect(reasons).toEqual([]);
  process.kill(server.pid, "SIGSTOP");
  try {
    await until("the silence is noticed", () => reasons.includes("LC0856"));
    await until("an attempt ends", () => reasons.includes("LC0853"));
  } finally {
    process.kill(server.pid, "SIGCONT");
  }
  await until("restored", () => connection.isActive);
  connection.disconnect();
});

test("a database that is not there", async () => {
  const missing = connected(Bank.builder().withUri(server.url).withDatabaseName("never-made"));
  await expect(missing).rejects.toMatchObject({ code: "LC0831" });
});

test("a server that is killed and started again: the same identity, the differences, and calls that waited", async () => {
  const log: string[] = [];
  const attempts: ReconnectingInfo[] = [];
  const ends: unknown[] = [];
  let batches = 0;
  const connection = await connected(
    builder()
      .withReconnect({ baseDelayMs: 20, maxDelayMs: 200 })
      .withWSFn(async (args) => {
        const socket = await OrderedSocket.open(args);
        const { send } = socket;
        socket.send = (bytes) => {
          if (bytes[0] === 5) batches += 1;
          send.call(socket, bytes);
        };
        return socket;
      })
      .onReconnecting((_, info) => attempts.push(info))
      .onReconnect(() => log.push("reconnect"))
      .onDisconnect((_, error) => ends.push(error)),
  );
  const identity = connection.identity!.toHexString();
  const connectionId = connection.connectionId.toHexString();
  await connection.reducers.seed({ n: 10, initialBalance: 100n });
  await subscribed(connection, "SELECT * FROM accounts WHERE id < 8");
  await subscribed(connection, "SELECT * FROM accounts WHERE id >= 5");
  const { accounts } = connection.db;
  const untouched = accounts.id.find(9);
  accounts.onInsert((_, { id }) => log.push(`+${id}`));
  accounts.onDelete((_, { id }) => log.push(`-${id}`));
  accounts.onUpdate((_, old, row) => log.push(`${row.id}: ${old.balance} > ${row.balance}`));

  const { port } = new URL(server.url);
  await server.kill();
  await until("the loss is noticed", () => attempts.length > 0);
  expect(connection.isActive).toBe(false);
  expect(accounts.count()).toBe(10n);
  const waiting = connection.reducers.transfer({ from: 0, to: 1, amount: 5n });

  // Back on the same port; another client is faster.
  await server.launch("--listen-addr", `127.0.0.1:${port}`);
  await waiting;
  await until("restored", () => log.includes("reconnect"));
  expect(batches).toBe(1);
  expect(connection.identity!.toHexString()).toBe(identity);
  expect(connection.connectionId.toHexString()).not.toBe(connectionId);
  await until("the transfer is seen", () => accounts.id.find(1)?.balance === 105n);
  expect(log).toEqual(["reconnect", "0: 100 > 95", "1: 100 > 105"]);
  expect(accounts.id.find(9)).toBe(untouched);

  // What happened while a connection was away arrives as the difference.
  log.length = 0;
  await connection.reducers.transfer({ from: 2, to: 3, amount: 1n });
  expect(log).toEqual(["2: 100 > 99", "3: 100 > 101"]);
  connection.disconnect();
  await until("the end", () => ends.length > 0);
  expect(ends).toEqual([undefined]);
});

test("a connection that only the client has lost: the server ends it before it takes the next", async () => {
  const sockets: WebSocket[] = [];
  const codes: number[] = [];
  const attempts: number[] = [];
  const connection = await connected(
    builder()
      .withReconnect({ baseDelayMs: 20 })
      .withWSFn(async (args) => {
        const socket = await openWebSocket(args);
        sockets.push(socket);
        socket.addEventListener("close", ({ code }) => codes.push(code));
        return new OrderedSocket(socket);
      })
      .onReconnecting((_, { attempt }) => attempts.push(attempt)),
  );
  await subscribed(connection, "SELECT * FROM accounts");
  const [lost] = sockets as [WebSocket];
  lost.close = () => {};
  lost.onclose!({} as CloseEvent);
  await until("restored", () => connection.isActive);
  expect(sockets).toHaveLength(3);
  await until("the lost one is closed", () => lost.readyState === lost.CLOSED);
  expect(codes.sort()).toEqual([1006, 4000]);
  expect(attempts).toEqual([1, 1]);
  connection.disconnect();
});

test("changes that others made meanwhile arrive as differences", async () => {
  const other = await connected(builder());
  await other.reducers.seed({ n: 6, initialBalance: 10n });
  let socket: WebSocket | undefined;
  const connection = await connected(
    builder()
      .withReconnect({ baseDelayMs: 300 })
      .withWSFn(async (args) => {
        socket = await openWebSocket(args);
        return new OrderedSocket(socket);
      }),
  );
  await subscribed(
    connection,
    "SELECT * FROM accounts WHERE balance = 10",
    "SELECT * FROM accounts WHERE id = 0",
  );
  const log: string[] = [];
  const { accounts } = connection.db;
  accounts.onInsert((_, { id }) => log.push(`+${id}`));
  accounts.onDelete((_, { id }) => log.push(`-${id}`));
  accounts.onUpdate((_, old, row) => log.push(`${row.id}: ${old.balance} > ${row.balance}`));
  socket!.close();
  await until("the loss is noticed", () => connection.isReconnecting);
  await other.reducers.transfer({ from: 0, to: 5, amount: 4n });
  await until("restored", () => connection.isActive && log.length > 0);
  expect(log).toEqual(["0: 10 > 6", "-5"]);
  connection.disconnect();
  other.disconnect();
});
