// Views, with the published npm package: rows come and go with the tables they follow from, and a view that fails is told and
// repaired, whatever the package makes of it.

import { afterAll, beforeAll, expect, test } from "vitest";
import { tables } from "../src/bindings/views";
import { connectViews } from "../src/sdk";
import { Server, wasm } from "../src/server";

let server: Server;

beforeAll(async () => {
  server = await Server.start();
  await server.publish("views", wasm("views"));
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

test("rows of views come, change and go with their tables", async () => {
  const alice = await connectViews(server, "views");
  const bob = await connectViews(server, "views");
  const { myMessages, myBest, total, roomOne, myQuery, fragile, audit } = tables;
  const errors: string[] = [];
  for (const { connection } of [alice, bob]) {
    await new Promise<void>((resolve) =>
      connection
        .subscriptionBuilder()
        .onApplied(() => resolve())
        .onError((context) => errors.push(String(context.event)))
        .subscribe([myMessages, myBest, total, roomOne, myQuery, fragile, audit]),
    );
  }
  const { db, reducers } = alice.connection;
  const events: string[] = [];
  db.myMessages.onInsert((context, row) => {
    // All views are of one state when the callbacks run.
    events.push(
      `${context.event.tag} ${row.text} ${db.myQuery.count()} ${[...db.total.iter()][0]?.messages}`,
    );
  });
  await reducers.put({ id: 1, owner: alice.identity, room: 1, score: 20, text: "one" });
  await bob.connection.reducers.put({ id: 2, owner: alice.identity, room: 2, score: 30, text: "two" });
  await until("both", () => db.myMessages.count() === 2n);
  expect(events).toEqual(["Reducer one 1 1", "Transaction two 2 2"]);
  expect([...db.myBest.iter()].map((row) => row.text)).toEqual(["two"]);
  expect([...db.roomOne.iter()].map((row) => row.text)).toEqual(["one"]);
  await until("the total of bob", () => [...bob.connection.db.total.iter()][0]?.messages === 2n);
  expect(bob.connection.db.myMessages.count()).toBe(0n);
  expect(bob.connection.db.roomOne.count()).toBe(1n);

  // A view that fails: an error, rows that stand, and what has changed when it works again.
  expect(db.fragile.count()).toBe(2n);
  await reducers.setMode({ value: 1 });
  await until("both are told", () => errors.length === 2);
  expect(errors[0]).toContain("the view `fragile` failed");
  await reducers.put({ id: 3, owner: alice.identity, room: 1, score: 5, text: "three" });
  await until("the third", () => db.myMessages.count() === 3n);
  expect(db.fragile.count()).toBe(2n);
  await reducers.setMode({ value: 0 });
  await until("the view is repaired", () => db.fragile.count() === 3n);
  expect(db.audit.count()).toBe(2n);

  await reducers.take({ id: 1 });
  await until("one is gone", () => db.roomOne.count() === 1n && db.fragile.count() === 2n);
  for (const { connection, ended } of [alice, bob]) {
    connection.disconnect();
    await ended;
  }
});
