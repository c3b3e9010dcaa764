// Publishing a module whose schema changes, under clients of the published npm package that stay connected or must not.

import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { tables } from "../src/bindings/shop";
import { connectShop } from "../src/sdk";
import { bundle, Server, until } from "../src/server";

let server: Server;

/** The shop in one of its shapes: see modules/shop-ts. */
function shape(number: number): string {
  const text = readFileSync(bundle("shop"), "utf8");
  const changed = text.replace('"shape=1"', `"shape=${number}"`);
  if (changed === text && number !== 1) throw new Error("the bundle of shop-ts does not say its shape");
  const path = server.home.path(`shop-${number}.js`);
  writeFileSync(path, changed);
  return path;
}

const publish = (database: string, number: number, ...options: string[]) =>
  server.cli("publish", "--js-path", shape(number), ...options, database);

async function published(database: string, number: number, ...options: string[]): Promise<string> {
  const result = await publish(database, number, "--yes", ...options);
  if (result.code !== 0) throw new Error(result.stdout + result.stderr);
  return result.stdout + result.stderr;
}

beforeAll(async () => {
  server = await Server.start();
});
afterAll(() => server?.stop());

async function watch(database: string) {
  const client = await connectShop(server, database);
  await new Promise<void>((resolve, reject) =>
    client.connection
      .subscriptionBuilder()
      .onApplied(() => resolve())
      .onError((context) => reject(new Error(String(context.event))))
      .subscribe([tables.item, tables.count]),
  );
  return client;
}

test("a compatible publish: clients stay, and go on", async () => {
  await published("stays", 1);
  const alice = await watch("stays");
  let ended = false;
  void alice.ended.then(() => (ended = true));
  await alice.connection.reducers.addItem({ id: 1, name: "one" });
  await until("the first item", () => alice.connection.db.item.count() === 1n);

  const output = await published("stays", 2);
  expect(output).toContain("▸ Created user table: sale (public)");
  expect(output).toContain("▸ Created index item_name_idx_btree on [name] of table item");
  expect(output).toContain("▸ Changed columns for table item");
  expect(output).toContain("    • table item (1 row): read for index item_name_idx_btree");
  expect(output).not.toContain("!!!");

  // The same connection and the same subscription, with the new code and the new tables.
  await alice.connection.reducers.addItem({ id: 2, name: "two" });
  await until("the second item", () => alice.connection.db.item.count() === 2n);
  await until("the view", () => [...alice.connection.db.count.iter()][0]?.items === 2n);
  expect(await server.sql("stays", "SELECT * FROM sale")).toEqual([]);
  expect(ended).toBe(false);
  const logs = await server.cliOk("logs", "stays");
  expect(logs).toContain("Updated program to ");
  expect(logs).toContain("Creating table `sale`");
  expect(logs).toContain("Database updated");
  expect(logs).not.toContain("Disconnecting all users");
  alice.connection.disconnect();
});

test("a breaking publish asks, disconnects, and keeps all rows", async () => {
  await published("breaks", 2);
  const alice = await watch("breaks");
  await server.cliOk("call", "breaks", "add_item", "1", '"one"');
  await until("the item", () => alice.connection.db.item.count() === 1n);

  const declined = await publish("breaks", 3);
  expect(declined.code).toBe(1);
  expect(declined.stderr).toContain(
    "    + price: U32 (default: U32(\n    5,\n))\n!!! Warning: All clients will be disconnected",
  );
  expect(declined.stderr).toContain("    • table item (1 row): rewritten with the default of price");
  expect(declined.stderr).toContain("The above changes will BREAK existing clients.");
  await server.cliOk("call", "breaks", "add_item", "2", '"two"');
  await until("the second item", () => alice.connection.db.item.count() === 2n);

  await published("breaks", 3);
  await alice.ended;
  expect(alice.connection.isActive).toBe(false);
  expect(await server.sql("breaks", "SELECT id, name, price FROM item")).toEqual([
    [1, "one", 5],
    [2, "two", 5],
  ]);
  // With the code of the new program.
  await server.cliOk("call", "breaks", "add_item", "3", '"three"');
  expect(await server.sql("breaks", "SELECT price FROM item WHERE id = 3")).toEqual([[9]]);
  const logs = await server.cliOk("logs", "breaks");
  expect(logs).toContain("Disconnecting all users");
  expect(logs).toContain("a client left shape 3");
});

test("a migration function: who was built for the old module goes on with what is still there", async () => {
  await published("renamed", 1);
  const alice = await watch("renamed");
  await alice.connection.reducers.addItem({ id: 1, name: "one" });
  await until("the item", () => alice.connection.db.item.count() === 1n);

  const declined = await publish("renamed", 7);
  expect(declined.code).toBe(1);
  expect(declined.stderr).toContain(
    "    • table item (1 row): replaced by the migration function, which reads it as __old_item",
  );
  await published("renamed", 7);
  await alice.ended;
  expect(await server.sql("renamed", "SELECT id, label FROM item")).toEqual([[1, "one"]]);
  expect(await server.sql("renamed", "SELECT text FROM word")).toEqual([["one"]]);

  // The same bindings: a view that is as it was, and a table whose column has another name, in the same place.
  const again = await watch("renamed");
  expect([...again.connection.db.item.iter()].map(({ id, name }) => [id, name])).toEqual([[1, "one"]]);
  await again.connection.reducers.addItem({ id: 2, name: "two" });
  await until("the second item", () => again.connection.db.item.count() === 2n);
  await until("the view", () => [...again.connection.db.count.iter()][0]?.items === 2n);
  again.connection.disconnect();
});

test("what cannot be migrated is refused, with the way out", async () => {
  await published("refused", 3);
  await server.cliOk("call", "refused", "add_item", "1", '"one"');
  const impossible = await publish("refused", 4, "--yes");
  expect(impossible.code).toBe(1);
  expect(impossible.stderr).toContain(
    "Changing the type of column id in table item from U32 to U64 requires a manual migration [LC0220]",
  );
  expect(impossible.stderr).toContain("[LC0629]");
  // A table with rows is not removed, and that is said before anything is sent.
  const removed = await publish("refused", 6, "--yes");
  expect(removed.code).toBe(1);
  expect(removed.stderr).toContain("Table item cannot be removed: it has 1 row.");
  expect(removed.stderr).toContain("[LC0867]");
  expect(await server.sql("refused", "SELECT id FROM item")).toEqual([[1]]);
  await server.cliOk("sql", "refused", "DELETE FROM item");
  await published("refused", 6);
  await expect(server.sql("refused", "SELECT id FROM item")).rejects.toThrow("item");
});

test("a dry run finds what the data refuse, and changes nothing", async () => {
  await published("tried", 3);
  await server.cliOk("call", "tried", "add_item", "1", '"same"');
  await server.cliOk("call", "tried", "add_item", "2", '"same"');
  const refused = await publish("tried", 5, "--dry-run");
  expect(refused.code).toBe(1);
  expect(refused.stdout).toContain("▸ Created unique constraint item_name_key on [name] of table item");
  expect(refused.stderr).toContain("item_name");
  await server.cliOk("sql", "tried", "UPDATE item SET name = 'other' WHERE id = 2");
  const tried = await publish("tried", 5, "--dry-run");
  expect(tried.stderr).not.toContain("Error");
  expect(tried.code).toBe(0);
  expect(tried.stdout).toMatch(/Estimated time: \d+/);
  // The program is the old one: two of a name are no problem yet.
  await server.cliOk("call", "tried", "add_item", "3", '"other"');
  expect((await publish("tried", 5, "--yes")).code).toBe(1);
});

test("deleting data says how much", async () => {
  await published("deleted", 3);
  await server.cliOk("call", "deleted", "add_item", "1", '"one"');
  const declined = await publish("deleted", 4, "--delete-data=on-conflict");
  expect(declined.code).toBe(1);
  expect(declined.stderr).toContain("These rows will be lost:\n    • item: 1 row\n");
  expect(await server.sql("deleted", "SELECT id FROM item")).toEqual([[1]]);
  await published("deleted", 4, "--delete-data=on-conflict");
  expect(await server.sql("deleted", "SELECT id FROM item")).toEqual([]);
});

test("changes survive a kill", async () => {
  await published("killed", 1);
  await server.cliOk("call", "killed", "add_item", "1", '"one"');
  await published("killed", 3);
  await server.cliOk("call", "killed", "add_item", "2", '"two"');
  await published("killed", 5);
  await server.kill();
  await server.launch();
  expect(await server.sql("killed", "SELECT id, name, price FROM item")).toEqual([
    [1, "one", 5],
    [2, "two", 9],
  ]);
  const twice = await server.cli("call", "killed", "add_item", "3", '"two"');
  expect(twice.code).toBe(1);
  await server.cliOk("call", "killed", "add_item", "3", '"three"');
});
