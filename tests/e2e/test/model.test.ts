// Subscriptions against a naive model: random query sets come and go on random clients while rows change, and after every
// step each client must hold exactly the rows that each of its sets asks for, with their multiplicity.

import { afterAll, beforeAll, expect, test } from "vitest";
import { RawClient } from "../src/raw-client";
import { Server, wasm } from "../src/server";
import { message, type QuerySetUpdate, type Rows, Writer } from "../src/wire";

const STEPS = Number(process.env.LIGHTCONE_MODEL_STEPS ?? 600);
let state = Number(process.env.LIGHTCONE_MODEL_SEED ?? Date.now() % 0xffffffff) >>> 0;
const firstSeed = state;
function random(limit: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
}
const pick = <T>(choices: readonly T[]): T => choices[random(choices.length)];

let server: Server;
beforeAll(async () => {
  server = await Server.start();
  await server.publish("bank", wasm("transfer"));
});
afterAll(() => server?.stop());

interface Query {
  sql: string;
  matches(id: number, balance: bigint): boolean;
}

const ACCOUNTS = 12;
const START = 20n;

function query(): Query {
  const id = random(ACCOUNTS + 2);
  const balance = START + BigInt(random(7) - 3);
  return pick<Query>([
    { sql: "SELECT * FROM accounts", matches: () => true },
    { sql: `SELECT * FROM accounts WHERE id = ${id}`, matches: (i) => i === id },
    { sql: `select accounts.* from accounts where accounts.id = ${id}`, matches: (i) => i === id },
    { sql: `SELECT * FROM accounts WHERE balance = ${balance}`, matches: (_, b) => b === balance },
    {
      sql: `SELECT * FROM accounts WHERE id = ${id} AND balance = ${balance}`,
      matches: (i, b) => i === id && b === balance,
    },
  ]);
}

type Bag = Map<string, number>;
const add = (bag: Bag, row: string, count: number): void => {
  const sum = (bag.get(row) ?? 0) + count;
  if (sum === 0) bag.delete(row);
  else bag.set(row, sum);
};
const rowText = (row: Buffer): string => `${row.readUInt32LE(0)}=${row.readBigInt64LE(4)}`;
const sorted = (bag: Bag): [string, number][] => [...bag].sort();

/** What a client holds, by query set. */
class Holder {
  sets = new Map<number, { queries: Query[]; rows: Bag }>();
  #nextSet = 1;
  #request = 1000;
  constructor(readonly client: RawClient) {}

  async subscribe(queries: Query[]): Promise<void> {
    const set = this.#nextSet++;
    this.client.send(
      message.subscribe(
        this.#request++,
        set,
        queries.map((q) => q.sql),
      ),
    );
    const applied = await this.until("SubscribeApplied");
    if (applied.type !== "SubscribeApplied") throw new Error(applied.type);
    const rows: Bag = new Map();
    this.#addRows(rows, applied.tables, 1);
    // Equal texts in one set are one query.
    const distinct = queries.filter((q, i) => queries.findIndex((other) => other.sql === q.sql) === i);
    this.sets.set(set, { queries: distinct, rows });
  }

  async unsubscribe(set: number): Promise<void> {
    this.client.send(message.unsubscribe(this.#request++, set, true));
    const applied = await this.until("UnsubscribeApplied");
    if (applied.type !== "UnsubscribeApplied") throw new Error(applied.type);
    const held = this.sets.get(set)!.rows;
    this.#addRows(held, applied.tables!, -1);
    expect(sorted(held)).toEqual([]);
    this.sets.delete(set);
  }

  /** Everything that was committed before this is applied afterwards. */
  async barrier(): Promise<void> {
    this.client.send(message.oneOffQuery(this.#request++, "SELECT * FROM accounts WHERE id = 0"));
    await this.until("OneOffQueryResult");
  }

  /** Calls a reducer; its own changes come with its result. */
  async call(reducer: string, args: Buffer): Promise<string> {
    this.client.send(message.callReducer(this.#request++, reducer, args));
    const result = await this.until("ReducerResult");
    if (result.type !== "ReducerResult") throw new Error(result.type);
    if (result.outcome.kind === "Ok") this.apply(result.outcome.querySets);
    return result.outcome.kind;
  }

  async until(type: string) {
    for (;;) {
      const next = await this.client.next();
      if (next.type === type) return next;
      if (next.type !== "TransactionUpdate") throw new Error(`${next.type} while waiting for ${type}`);
      this.apply(next.querySets);
    }
  }

  apply(updates: QuerySetUpdate[]): void {
    expect(new Set(updates.map((u) => u.querySet)).size).toBe(updates.length);
    for (const { querySet, tables } of updates) {
      const set = this.sets.get(querySet);
      if (!set) throw new Error(`an update of set ${querySet}, which does not live`);
      for (const { inserts, deletes } of tables) {
        expect(inserts.length + deletes.length).toBeGreaterThan(0);
        for (const row of inserts) add(set.rows, rowText(row), 1);
        for (const row of deletes) add(set.rows, rowText(row), -1);
      }
      for (const [row, count] of set.rows)
        if (count < 0) throw new Error(`row ${row} was deleted once too often`);
    }
  }

  #addRows(bag: Bag, tables: Rows[], count: number): void {
    for (const { rows } of tables) for (const row of rows) add(bag, rowText(row), count);
  }
}

test(`${STEPS} random steps`, async () => {
  const holders: Holder[] = [];
  for (const protocol of ["v2", "v3", "v3"] as const) {
    holders.push(
      new Holder(
        await RawClient.connect(server.url, "bank", {
          protocol,
          confirmed: protocol === "v2" || holders.length < 2,
        }),
      ),
    );
  }
  let accounts: bigint[] = [];
  for (let step = 0; step < STEPS; step++) {
    const holder = pick(holders);
    const what = random(20);
    if (what < 3) await holder.subscribe(Array.from({ length: 1 + random(3) }, query));
    else if (what < 5 && holder.sets.size > 0) await holder.unsubscribe(pick([...holder.sets.keys()]));
    else if (what === 5) {
      const n = random(ACCOUNTS);
      expect(await holder.call("seed", new Writer().u32(n).i64(START).done())).toBe("Ok");
      accounts = Array.from({ length: n }, () => START);
    } else {
      const [from, to, amount] = [random(ACCOUNTS), random(ACCOUNTS), BigInt(random(4))];
      const kind = await holder.call("transfer", new Writer().u32(from).u32(to).i64(amount).done());
      const allowed =
        from !== to &&
        amount > 0n &&
        from < accounts.length &&
        to < accounts.length &&
        accounts[from] >= amount;
      expect(kind).toBe(allowed ? "Ok" : "Err");
      if (allowed) {
        accounts[from] -= amount;
        accounts[to] += amount;
      }
    }
    for (const [index, holder] of holders.entries()) {
      await holder.barrier();
      for (const [set, { queries, rows }] of holder.sets) {
        const wanted: Bag = new Map();
        for (const { matches } of queries) {
          for (const [id, balance] of accounts.entries())
            if (matches(id, balance)) add(wanted, `${id}=${balance}`, 1);
        }
        const texts = queries.map((q) => q.sql).join("; ");
        expect(
          sorted(rows),
          `step ${step}, client ${index}, set ${set}: ${texts} (LIGHTCONE_MODEL_SEED=${firstSeed})`,
        ).toEqual(sorted(wanted));
      }
    }
  }
  for (const { client } of holders) await client.close();
}, 60_000);
