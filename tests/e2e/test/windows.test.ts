// The first rows of an order, and aggregates through a view, with the published npm package.

import { afterAll, beforeAll, expect, test } from "vitest";
import { connectBoards } from "../src/sdk";
import { Server, wasm } from "../src/server";

let server: Server;

beforeAll(async () => {
  server = await Server.start();
  await server.publish("boards", wasm("boards"));
});
afterAll(() => server?.stop());

type Connection = Awaited<ReturnType<typeof connectBoards>>["connection"];

/** Subscribes, and waits for the first rows. */
const applied = (connection: Connection, text: string) =>
  new Promise<void>((resolve, reject) =>
    connection
      .subscriptionBuilder()
      .onApplied(() => resolve())
      .onError((context) => reject(new Error(String(context.event))))
      .subscribe([text]),
  );

test("rows enter the window and leave it", async () => {
  const { connection, ended } = await connectBoards(server, "boards");
  const { reducers, db } = connection;
  const changes: string[] = [];
  db.score.onInsert((_context, row) => void changes.push(`+${row.id}`));
  db.score.onDelete((_context, row) => void changes.push(`-${row.id}`));
  db.score.onUpdate((_context, _old, row) => void changes.push(`=${row.id}`));
  for (const id of [1, 2, 3, 4]) await reducers.put({ id, team: 1, points: id * 10 });
  await applied(connection, "SELECT * FROM score WHERE team = 1 ORDER BY points DESC LIMIT 2");
  const ids = () => [...db.score.iter()].map((row) => row.id).sort();
  expect(ids()).toEqual([3, 4]);
  changes.length = 0;
  await reducers.put({ id: 1, team: 1, points: 15 });
  await reducers.put({ id: 9, team: 2, points: 100 });
  expect(changes).toEqual([]);
  await reducers.put({ id: 2, team: 1, points: 50 });
  expect(ids()).toEqual([2, 4]);
  expect(changes.sort()).toEqual(["+2", "-3"]);
  changes.length = 0;
  await reducers.put({ id: 4, team: 1, points: 60 });
  expect(changes).toEqual(["=4"]);
  await reducers.take({ id: 2 });
  expect(ids()).toEqual([3, 4]);
  connection.disconnect();
  await ended;
});

test("views of aggregates and of windows follow their table", async () => {
  const { connection, ended } = await connectBoards(server, "boards");
  const { reducers, db } = connection;
  await reducers.put({ id: 20, team: 7, points: 1000 });
  await applied(connection, "SELECT * FROM by_team WHERE team = 7");
  await applied(connection, "SELECT * FROM first_two");
  const team = () =>
    [...db.byTeam.iter()].map(({ players, points, best, mean }) => ({ players, points, best, mean }));
  expect(team()).toEqual([{ players: 1n, points: 1000n, best: 1000, mean: 1000 }]);
  await reducers.put({ id: 21, team: 7, points: 2001 });
  expect(team()).toEqual([{ players: 2n, points: 3001n, best: 2001, mean: 1500.5 }]);
  expect([...db.firstTwo.iter()].map((row) => row.id).sort()).toEqual([20, 21]);
  await reducers.take({ id: 20 });
  await reducers.put({ id: 21, team: 8, points: 2001 });
  expect(team()).toEqual([]);
  await reducers.put({ id: 22, team: 8, points: 3000 });
  expect([...db.firstTwo.iter()].map((row) => row.id).sort()).toEqual([21, 22]);
  connection.disconnect();
  await ended;
});

test("aggregates are refused in a subscription, with what to do", async () => {
  const { connection, ended } = await connectBoards(server, "boards");
  const refused = applied(connection, "SELECT team, COUNT(*) AS n FROM score GROUP BY team");
  await expect(refused).rejects.toThrow(/view of the module.*LC0416/);
  connection.disconnect();
  await ended;
});
