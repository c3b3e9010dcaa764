// Joins in subscriptions and row-level security, with the published npm package and its query builder.

import { afterAll, beforeAll, expect, test } from "vitest";
import { tables } from "../src/bindings/rooms";
import { connectRooms } from "../src/sdk";
import { Server, wasm } from "../src/server";

let server: Server;

beforeAll(async () => {
  server = await Server.start();
  await server.publish("rooms", wasm("rooms"));
});
afterAll(() => server?.stop());

/** Waits until something holds. */
async function until(what: string, holds: () => boolean) {
  for (let turn = 0; turn < 400; turn++) {
    if (holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`never: ${what}`);
}

type Connection = Awaited<ReturnType<typeof connectRooms>>["connection"];

type Builder = ReturnType<Connection["subscriptionBuilder"]>;

/** Subscribes, and waits for the first rows. */
const applied = (connection: Connection, subscribe: (builder: Builder) => unknown) =>
  new Promise<void>((resolve, reject) =>
    subscribe(
      connection
        .subscriptionBuilder()
        .onApplied(() => resolve())
        .onError((context) => reject(new Error(String(context.event)))),
    ),
  );

const texts = (connection: Connection) => [...connection.db.message.iter()].map((row) => row.text).sort();

test("members see the messages of their rooms, from when they enter until they leave", async () => {
  const alice = await connectRooms(server, "rooms");
  const bob = await connectRooms(server, "rooms");
  for (const { connection } of [alice, bob])
    await applied(connection, (builder) => builder.subscribe([tables.message]));
  await alice.connection.reducers.enter({ room: 1 });
  await bob.connection.reducers.enter({ room: 2 });
  await alice.connection.reducers.say({ room: 1, text: "to one" });
  await bob.connection.reducers.say({ room: 2, text: "to two" });
  await until("alice has hers", () => texts(alice.connection).join() === "to one");
  await until("bob has his", () => texts(bob.connection).join() === "to two");

  // Who enters gets what was said before, in the result of the call.
  await bob.connection.reducers.enter({ room: 1 });
  expect(texts(bob.connection)).toEqual(["to one", "to two"]);
  await alice.connection.reducers.say({ room: 1, text: "to both" });
  await until("bob hears it", () => texts(bob.connection).join() === "to both,to one,to two");
  await bob.connection.reducers.leave({ room: 1 });
  expect(texts(bob.connection)).toEqual(["to two"]);
  expect(texts(alice.connection)).toEqual(["to both", "to one"]);
  for (const { connection, ended } of [alice, bob]) {
    connection.disconnect();
    await ended;
  }
});

test("semijoins of the query builder follow both tables", async () => {
  const { connection, ended } = await connectRooms(server, "rooms");
  const { reducers, db } = connection;
  for (const id of [10, 11]) await reducers.putRoom({ id, open: id === 10 });
  for (const room of [10, 11]) await reducers.enter({ room });
  const open = tables.room
    .where((room) => room.open.eq(true))
    .rightSemijoin(tables.membership, (room, membership) => room.id.eq(membership.room));
  await applied(connection, (builder) => builder.subscribe([open]));
  const rooms = () => [...db.membership.iter()].map((row) => row.room).sort();
  expect(rooms()).toEqual([10]);
  await reducers.putRoom({ id: 11, open: true });
  expect(rooms()).toEqual([10, 11]);
  await reducers.putRoom({ id: 10, open: false });
  expect(rooms()).toEqual([11]);
  await reducers.leave({ room: 11 });
  expect(rooms()).toEqual([]);
  connection.disconnect();
  await ended;
});

// With the rule on messages, they are three.
test("a subscription follows more than two tables", async () => {
  const { connection, ended } = await connectRooms(server, "rooms");
  const { reducers } = connection;
  const query = "SELECT message.* FROM message JOIN room ON message.room = room.id WHERE room.open = TRUE";
  await reducers.putRoom({ id: 20, open: false });
  await reducers.say({ room: 20, text: "hello" });
  await applied(connection, (builder) => builder.subscribe([query]));
  expect(texts(connection)).toEqual([]);
  await reducers.enter({ room: 20 });
  expect(texts(connection)).toEqual([]);
  await reducers.putRoom({ id: 20, open: true });
  expect(texts(connection)).toEqual(["hello"]);
  await reducers.leave({ room: 20 });
  expect(texts(connection)).toEqual([]);
  connection.disconnect();
  await ended;
});

test("a row comes with the first match of a subquery and goes with the last one", async () => {
  const alice = await connectRooms(server, "rooms");
  const bob = await connectRooms(server, "rooms");
  const mine = "SELECT * FROM room WHERE id IN (SELECT room FROM membership WHERE member = :sender)";
  const empty = "SELECT * FROM room WHERE NOT EXISTS (SELECT 1 FROM membership x WHERE x.room = room.id)";
  const rooms = ({ connection }: typeof alice) => [...connection.db.room.iter()].map((row) => row.id).sort();
  for (const id of [30, 31]) await alice.connection.reducers.putRoom({ id, open: true });
  await applied(alice.connection, (builder) => builder.subscribe([mine]));
  await applied(bob.connection, (builder) => builder.subscribe([mine]));
  expect(rooms(alice)).toEqual([]);
  const { reducers } = alice.connection;
  await reducers.enter({ room: 30 });
  await reducers.enter({ room: 30 });
  await reducers.enter({ room: 31 });
  await bob.connection.reducers.enter({ room: 31 });
  expect(rooms(alice)).toEqual([30, 31]);
  expect(rooms(bob)).toEqual([31]);
  // Both memberships go at once; those of bob stay.
  await reducers.leave({ room: 30 });
  await reducers.leave({ room: 31 });
  expect(rooms(alice)).toEqual([]);
  expect(rooms(bob)).toEqual([31]);
  const watcher = await connectRooms(server, "rooms");
  await applied(watcher.connection, (builder) => builder.subscribe([empty]));
  expect(rooms(watcher)).toContain(30);
  expect(rooms(watcher)).not.toContain(31);
  await bob.connection.reducers.leave({ room: 31 });
  await until("the room is empty", () => rooms(watcher).includes(31));
  await reducers.enter({ room: 31 });
  await until("the room is not empty", () => !rooms(watcher).includes(31));
  const refused = applied(alice.connection, (builder) =>
    builder.subscribe(["SELECT * FROM room WHERE EXISTS (SELECT 1 FROM membership)"]),
  );
  await expect(refused).rejects.toThrow(/LC0417/);
  for (const { connection, ended } of [alice, bob, watcher]) {
    connection.disconnect();
    await ended;
  }
});
