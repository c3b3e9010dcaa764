// The published npm package against a real server: connections, calls, subscriptions.

import { InternalError, SenderError } from "spacetimedb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DbConnection as Transfer } from "../src/bindings/transfer";
import { RawClient } from "../src/raw-client";
import { type Connected, connectCoverage, connectTransfer, recordingSocket, subscribe } from "../src/sdk";
import { Server, until, wasm } from "../src/server";

let server: Server;

beforeAll(async () => {
  server = await Server.start();
  await server.publish("bank", wasm("transfer"));
  await server.publish("all", wasm("coverage"));
});
afterAll(() => server?.stop());

interface Change {
  kind: "insert" | "delete" | "update";
  id: number;
  balance: bigint;
  before?: bigint;
}

/** Every callback of table `accounts`, in order. */
function record({ connection }: Connected<Transfer>): Change[] {
  const changes: Change[] = [];
  const { accounts } = connection.db;
  accounts.onInsert((_, row) => changes.push({ kind: "insert", ...row }));
  accounts.onDelete((_, row) => changes.push({ kind: "delete", ...row }));
  accounts.onUpdate((_, old, row) => changes.push({ kind: "update", ...row, before: old.balance }));
  return changes;
}

const balances = ({ connection }: Connected<Transfer>): Map<number, bigint> =>
  new Map([...connection.db.accounts.iter()].map((row) => [row.id, row.balance]));

describe("connections", () => {
  test("the package gets an identity and a token, and the token gives the same identity again", async () => {
    const first = await connectTransfer(server, "bank");
    expect(first.identity.toHexString()).toMatch(/^c200[0-9a-f]{60}$/);
    expect(first.token.split(".")).toHaveLength(3);
    first.connection.disconnect();
    await first.ended;

    const again = await connectTransfer(server, "bank", { token: first.token });
    expect(again.identity.toHexString()).toBe(first.identity.toHexString());
    expect(again.connection.connectionId.toHexString()).not.toBe(first.connection.connectionId.toHexString());
    again.connection.disconnect();

    const other = await connectTransfer(server, "bank");
    expect(other.identity.toHexString()).not.toBe(first.identity.toHexString());
    other.connection.disconnect();
  });

  test("a token that is none is refused before a socket opens", async () => {
    await expect(connectTransfer(server, "bank", { token: "nonsense" })).rejects.toThrow(
      "Failed to verify token",
    );
  });

  test("a database that is not there is a connection error", async () => {
    await expect(connectTransfer(server, "never-made")).rejects.toBeDefined();
  });

  test.each([
    ["v3", ["v3.bsatn.spacetimedb", "v2.bsatn.spacetimedb"]],
    ["v2", ["v2.bsatn.spacetimedb"]],
  ])("sub-protocol %s", async (version, protocols) => {
    const socket = recordingSocket(protocols);
    const client = await connectTransfer(server, "bank", { webSocket: socket.factory });
    expect(socket.protocol()).toBe(`${version}.bsatn.spacetimedb`);
    await client.connection.reducers.seed({ n: 3, initialBalance: 100n });
    await subscribe(client.connection, "SELECT * FROM accounts");
    await Promise.all([
      client.connection.reducers.transfer({ from: 0, to: 1, amount: 10n }),
      client.connection.reducers.transfer({ from: 1, to: 2, amount: 5n }),
    ]);
    expect(balances(client)).toEqual(
      new Map([
        [0, 90n],
        [1, 105n],
        [2, 105n],
      ]),
    );
    client.connection.disconnect();
    await client.ended;
  });

  test("subscribeToAllTables", async () => {
    const client = await connectTransfer(server, "bank");
    await client.connection.reducers.seed({ n: 3, initialBalance: 100n });
    await new Promise<void>((resolve, reject) =>
      client.connection
        .subscriptionBuilder()
        .onApplied(() => resolve())
        .onError((context) => reject(context.event))
        .subscribeToAllTables(),
    );
    expect(client.connection.db.accounts.count()).toBe(3n);
    client.connection.disconnect();
    await client.ended;
  });

  test.each([true, false])("confirmed reads %s", async (confirmed) => {
    const socket = recordingSocket();
    const client = await connectTransfer(server, "bank", { confirmed, webSocket: socket.factory });
    expect(socket.url().searchParams.get("confirmed")).toBe(String(confirmed));
    await client.connection.reducers.seed({ n: 2, initialBalance: 5n });
    await subscribe(client.connection, "SELECT * FROM accounts");
    await client.connection.reducers.transfer({ from: 0, to: 1, amount: 1n });
    expect(balances(client)).toEqual(
      new Map([
        [0, 4n],
        [1, 6n],
      ]),
    );
    client.connection.disconnect();
  });

  test.each(["gzip", "none"] as const)("compression %s carries large results", async (compression) => {
    const socket = recordingSocket();
    const client = await connectTransfer(server, "bank", { compression, webSocket: socket.factory });
    await client.connection.reducers.seed({ n: 50_000, initialBalance: 1n });
    await subscribe(client.connection, "SELECT * FROM accounts");
    expect(client.connection.db.accounts.count()).toBe(50_000n);
    expect(socket.tags.filter((tag) => tag !== 0 && !(compression === "gzip" && tag === 2))).toEqual([]);
    client.connection.disconnect();

    const plain = await connectTransfer(server, "bank", { compression, light: true });
    await subscribe(plain.connection, "SELECT * FROM accounts WHERE id = 7");
    expect(balances(plain)).toEqual(new Map([[7, 1n]]));
    plain.connection.disconnect();
  });
});

describe("calls", () => {
  test("Ok, SenderError, InternalError", async () => {
    const client = await connectCoverage(server, "all");
    const { reducers } = client.connection;
    await reducers.setMark({ id: 1, text: "one" });
    const refused = await reducers.fail({ message: "not like this" }).catch((error) => error);
    expect(refused).toBeInstanceOf(SenderError);
    expect(refused.message).toBe("not like this");
    const broken = await reducers.panic({ message: "boom" }).catch((error) => error);
    expect(broken).toBeInstanceOf(InternalError);
    expect(broken.message).toBe("The instance encountered a fatal error.");
    await reducers.setMark({ id: 2, text: "two" });
    await subscribe(client.connection, "SELECT * FROM marks WHERE id = 2");
    expect([...client.connection.db.marks.iter()]).toEqual([{ id: 2, text: "two" }]);
    client.connection.disconnect();
  });

  test("many calls under way are answered in order", async () => {
    const client = await connectTransfer(server, "bank");
    await client.connection.reducers.seed({ n: 2, initialBalance: 1000n });
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 300 }, async (_, i) => {
        await client.connection.reducers.transfer({ from: 0, to: 1, amount: 1n });
        order.push(i);
      }),
    );
    expect(order).toEqual(Array.from({ length: 300 }, (_, i) => i));
    const refused = client.connection.reducers.transfer({ from: 0, to: 1, amount: 701n });
    await expect(refused).rejects.toThrow("insufficient_funds");
    client.connection.disconnect();
  });

  test("a rejecting client_connected ends the connection without onConnect", async () => {
    const { identity, token } = await server.identity();
    await server.cliOk("call", "all", "ban", `0x${identity}`);
    const client = connectCoverage(server, "all", { token });
    const connected = await Promise.race([
      client.then(
        () => "connected",
        () => "refused",
      ),
      new Promise((resolve) => setTimeout(resolve, 1000, "silence")),
    ]);
    expect(connected).not.toBe("connected");
    await server.cliOk("call", "all", "unban", `0x${identity}`);
    (await connectCoverage(server, "all", { token })).connection.disconnect();
  });
});

describe("subscriptions", () => {
  test("initial rows, WHERE, and updates of the caller and of another client", async () => {
    const [a, b] = [await connectTransfer(server, "bank"), await connectTransfer(server, "bank")];
    await a.connection.reducers.seed({ n: 10, initialBalance: 100n });
    await subscribe(a.connection, "SELECT * FROM accounts");
    await subscribe(b.connection, "SELECT * FROM accounts WHERE id = 3");
    expect(balances(a).size).toBe(10);
    expect(balances(b)).toEqual(new Map([[3, 100n]]));

    const [atA, atB] = [record(a), record(b)];
    await a.connection.reducers.transfer({ from: 3, to: 4, amount: 7n });
    expect(atA.sort((x, y) => x.id - y.id)).toEqual([
      { kind: "update", id: 3, balance: 93n, before: 100n },
      { kind: "update", id: 4, balance: 107n, before: 100n },
    ]);
    await until("b sees it", () => atB.length > 0);
    expect(atB).toEqual([{ kind: "update", id: 3, balance: 93n, before: 100n }]);

    await b.connection.reducers.transfer({ from: 4, to: 5, amount: 1n });
    await until("a sees it", () => atA.length === 4);
    expect(balances(a).get(5)).toBe(101n);
    expect(atB).toHaveLength(1);
    a.connection.disconnect();
    b.connection.disconnect();
  });

  test("a seed replaces all rows: deletes, inserts and updates exactly once each", async () => {
    const client = await connectTransfer(server, "bank");
    await client.connection.reducers.seed({ n: 3, initialBalance: 1n });
    await subscribe(client.connection, "SELECT * FROM accounts");
    const changes = record(client);
    await client.connection.reducers.seed({ n: 5, initialBalance: 1n });
    // Rows 0 to 2 were deleted and inserted unchanged: no net effect.
    expect(changes.sort((x, y) => x.id - y.id)).toEqual([
      { kind: "insert", id: 3, balance: 1n },
      { kind: "insert", id: 4, balance: 1n },
    ]);
    changes.length = 0;
    await client.connection.reducers.seed({ n: 1, initialBalance: 2n });
    expect(changes.sort((x, y) => x.id - y.id)).toEqual([
      { kind: "update", id: 0, balance: 2n, before: 1n },
      ...[1, 2, 3, 4].map((id) => ({ kind: "delete", id, balance: 1n })),
    ]);
    client.connection.disconnect();
  });

  test("overlapping query sets count rows; unsubscribing takes only what is left over", async () => {
    const client = await connectTransfer(server, "bank");
    await client.connection.reducers.seed({ n: 4, initialBalance: 10n });
    const changes = record(client);
    const all = await subscribe(client.connection, "SELECT * FROM accounts");
    const one = await subscribe(
      client.connection,
      "SELECT * FROM accounts WHERE id = 1",
      "SELECT * FROM accounts WHERE balance = 10",
    );
    await until("initial rows", () => changes.length === 4);

    changes.length = 0;
    await client.connection.reducers.transfer({ from: 1, to: 2, amount: 3n });
    expect(changes.sort((x, y) => x.id - y.id)).toEqual([
      { kind: "update", id: 1, balance: 7n, before: 10n },
      { kind: "update", id: 2, balance: 13n, before: 10n },
    ]);

    changes.length = 0;
    await all.unsubscribe();
    await until("row 2 is gone", () => changes.length > 0);
    expect(changes).toEqual([{ kind: "delete", id: 2, balance: 13n }]);
    expect(balances(client)).toEqual(
      new Map([
        [0, 10n],
        [1, 7n],
        [3, 10n],
      ]),
    );

    // A row that leaves one query and stays in none, and one that enters.
    changes.length = 0;
    await client.connection.reducers.transfer({ from: 2, to: 0, amount: 3n });
    expect(changes.sort((x, y) => x.id - y.id)).toEqual([
      { kind: "delete", id: 0, balance: 10n },
      { kind: "insert", id: 2, balance: 10n },
    ]);

    await one.unsubscribe();
    expect(client.connection.db.accounts.count()).toBe(0n);
    changes.length = 0;
    await client.connection.reducers.transfer({ from: 2, to: 0, amount: 1n });
    expect(changes).toEqual([]);
    client.connection.disconnect();
  });

  test("a table without a primary key is a set of rows", async () => {
    const [a, b] = [await connectCoverage(server, "all"), await connectCoverage(server, "all")];
    await subscribe(a.connection, "SELECT * FROM plain_set");
    const seen: string[] = [];
    a.connection.db.plainSet.onInsert((_, row) => seen.push(`+${row.left}${row.right}`));
    a.connection.db.plainSet.onDelete((_, row) => seen.push(`-${row.left}${row.right}`));
    await b.connection.reducers.addPlain({ left: 1, right: "x" });
    await b.connection.reducers.addPlain({ left: 1, right: "x" });
    await b.connection.reducers.addPlain({ left: 2, right: 'é"\u{1F680}' });
    await b.connection.reducers.removePlain({ left: 1, right: "x" });
    await expect(b.connection.reducers.removePlain({ left: 1, right: "x" })).rejects.toThrow("no such row");
    await until("three changes", () => seen.length >= 3);
    expect(seen).toEqual(["+1x", '+2é"\u{1F680}', "-1x"]);
    a.connection.disconnect();
    b.connection.disconnect();
  });

  test("rows of an event table reach subscribers and are not kept", async () => {
    const [a, b] = [await connectCoverage(server, "all"), await connectCoverage(server, "all")];
    await subscribe(a.connection, "SELECT * FROM happenings");
    await subscribe(b.connection, "SELECT * FROM happenings WHERE times = 2");
    const [atA, atB]: [object[], object[]] = [[], []];
    a.connection.db.happenings.onInsert((_, row) => atA.push(row));
    b.connection.db.happenings.onInsert((_, row) => atB.push(row));
    await a.connection.reducers.announce({ what: "rain", times: 1 });
    await a.connection.reducers.announce({ what: "sun", times: 2 });
    expect(atA).toEqual([
      { what: "rain", times: 1 },
      { what: "sun", times: 2 },
    ]);
    await until("b sees one", () => atB.length > 0);
    expect(atB).toEqual([{ what: "sun", times: 2 }]);
    expect(a.connection.db.happenings.count()).toBe(0n);
    a.connection.disconnect();
    b.connection.disconnect();
  });

  test("a query that does not compile is an error of that subscription only", async () => {
    const client = await connectTransfer(server, "bank");
    const bad = subscribe(client.connection, "SELECT * FROM no_such_table");
    await expect(bad).rejects.toThrow("no such table: `no_such_table`");
    await expect(subscribe(client.connection, "SELECT id FROM accounts")).rejects.toThrow();
    await subscribe(client.connection, "SELECT * FROM accounts");
    client.connection.disconnect();
  });
});

describe("lifecycle", () => {
  test("each connection has one row in st_client and in the tables of its lifecycle reducers", async () => {
    const watcher = await connectCoverage(server, "all");
    await subscribe(watcher.connection, "SELECT * FROM online", "SELECT * FROM lifecycle");
    const visitor = await connectCoverage(server, "all");
    const id = visitor.connection.connectionId.toHexString();
    const isOnline = (who = id) =>
      [...watcher.connection.db.online.iter()].some((row) => row.connectionId.toHexString() === who);
    const clients = () =>
      server.sql("all", `SELECT * FROM st_client WHERE connection_id = ${BigInt(`0x${id}`)}`);
    await until("the visitor is online", () => isOnline());
    expect(await clients()).toHaveLength(1);
    visitor.connection.disconnect();
    await visitor.ended;
    await until("the visitor is offline", () => !isOnline());
    expect(await clients()).toHaveLength(0);

    // A client that vanishes without a Close counts as well.
    const raw = await RawClient.connect(server.url, "all");
    await until("the other visitor is online", () => isOnline(raw.connectionId));
    raw.socket.terminate();
    await until("both left", () => [...watcher.connection.db.online.iter()].length === 1);
    const events = [...watcher.connection.db.lifecycle.iter()];
    for (const connection of [id, raw.connectionId]) {
      expect(events.filter((e) => e.connectionId?.toHexString() === connection).map((e) => e.event)).toEqual([
        "connected",
        "disconnected",
      ]);
    }
    watcher.connection.disconnect();
  });
});
