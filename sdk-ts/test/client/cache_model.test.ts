// The cache against a naive model: a server in memory applies random transactions to two tables, clients hold random
// overlapping subscriptions, and connections break. After every message the cache must hold exactly the rows that the
// subscriptions select, and the callbacks must be exactly the difference to the state before.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { getQueryWhereClause, type SubscriptionHandleImpl } from "../../src/client";
import { RowView } from "../../src/client/row_views";
import { cacheOf } from "../../src/client/table_cache";
import { DbConnection, tables } from "./bindings";
import { FakeServer, type PersonRow, personBytes, type SetDelta, serverMessage, settle } from "./fake_server";

type TableName = "person" | "mark";
const TABLES: readonly TableName[] = ["person", "mark"];

/** Subscribed rows: ids in a range. */
interface Range {
  from: number;
  to: number;
}

const sqlOf = (table: TableName, { from, to }: Range): string =>
  `SELECT * FROM ${table} WHERE id BETWEEN ${from} AND ${to}`;
const keyOf = ({ id, name }: PersonRow): string => `${id}:${name}`;

function parseSql(sql: string): { table: TableName; range: Range } {
  const [, table, from, to] = /FROM (\w+) WHERE id BETWEEN (\d+) AND (\d+)/.exec(sql)!;
  return { table: table as TableName, range: { from: Number(from), to: Number(to) } };
}

/** What the server knows: rows, and the sets of its one client. Table `person` has unique ids, `mark` has not. */
class Model {
  readonly rows: Record<TableName, PersonRow[]> = { person: [], mark: [] };
  sets = new Map<number, { table: TableName; range: Range }[]>();

  selected(table: TableName, { from, to }: Range): PersonRow[] {
    return this.rows[table].filter(({ id }) => id >= from && id <= to);
  }

  /** Rows that the client must see, by their keys. */
  visible(table: TableName): Map<string, PersonRow> {
    const visible = new Map<string, PersonRow>();
    for (const queries of this.sets.values()) {
      for (const query of queries) {
        if (query.table !== table) continue;
        for (const row of this.selected(table, query.range)) visible.set(keyOf(row), row);
      }
    }
    return visible;
  }
}

type Operation =
  | { kind: "put"; table: TableName; id: number; name: string }
  | { kind: "remove"; table: TableName; id: number };

type Step =
  | { kind: "transaction"; operations: Operation[]; byCaller: boolean }
  | { kind: "subscribe"; table: TableName; ranges: Range[] }
  | { kind: "unsubscribe"; which: number }
  | { kind: "break"; meanwhile: Operation[]; unsubscribe: boolean };

const table = fc.constantFrom(...TABLES);
const id = fc.integer({ min: 0, max: 7 });
const name = fc.constantFrom("", "a", "bé", "c".repeat(40));
const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({ kind: fc.constant("put" as const), table, id, name }),
  fc.record({ kind: fc.constant("remove" as const), table, id }),
);
const range = fc.tuple(id, id).map(([a, b]) => ({ from: Math.min(a, b), to: Math.max(a, b) }));
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("transaction" as const),
      operations: fc.array(operation, { minLength: 1, maxLength: 5 }),
      byCaller: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("subscribe" as const),
      table,
      ranges: fc.array(range, { minLength: 1, maxLength: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("unsubscribe" as const), which: fc.nat(5) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("break" as const),
      meanwhile: fc.array(operation, { maxLength: 5 }),
      unsubscribe: fc.boolean(),
    }),
  },
);

function applyOperation(rows: Record<TableName, PersonRow[]>, operation: Operation): void {
  const { table, id } = operation;
  if (operation.kind === "remove") {
    rows[table] = rows[table].filter((row) => row.id !== id);
    return;
  }
  // Rows of `mark` are a set: an equal row is not there twice.
  rows[table] = rows[table].filter((row) =>
    table === "person" ? row.id !== id : keyOf(row) !== keyOf(operation),
  );
  rows[table].push({ id, name: operation.name });
}

/** Results that follow the cache, with what they must be. */
const VIEWS = TABLES.flatMap((table) => {
  // Both tables have the same columns.
  const rows = tables[table] as typeof tables.mark;
  const views: { query: unknown; table: TableName; holds: (row: PersonRow) => boolean }[] = [
    { query: rows, table, holds: () => true },
    { query: rows.where(({ name }) => name.eq("a")), table, holds: ({ name }) => name === "a" },
    { query: rows.where(({ id }) => id.gt(3)), table, holds: ({ id }) => id > 3 },
  ];
  return views;
});

/** Runs steps against one client. */
class Simulation {
  readonly server = new FakeServer();
  readonly model = new Model();
  readonly handles: SubscriptionHandleImpl<any>[] = [];
  readonly changes: Record<TableName, string[]> = { person: [], mark: [] };
  readonly connection: DbConnection;
  /** Attached, with what they had when they last told of a change. */
  readonly views: { view: RowView; told: readonly unknown[] }[];

  constructor() {
    this.connection = DbConnection.builder()
      .withUri("ws://localhost")
      .withDatabaseName("x")
      .withWSFn(this.server.factory)
      .withReconnect({ baseDelayMs: 0 })
      .build();
    this.views = VIEWS.map(({ query, table }) => {
      const view = new RowView(cacheOf(this.connection.db[table])!, getQueryWhereClause(query));
      const entry = { view, told: view.rows };
      view.attach(() => (entry.told = view.rows));
      return entry;
    });
    for (const table of TABLES) {
      const cache = this.connection.db[table];
      cache.onInsert((_, row) => this.changes[table].push(`+${keyOf(row)}`));
      cache.onDelete((_, row) => this.changes[table].push(`-${keyOf(row)}`));
    }
    this.connection.db.person.onUpdate((_, old, row) =>
      this.changes.person.push(`${keyOf(old)}>${keyOf(row)}`),
    );
  }

  async connect(): Promise<void> {
    await settle();
    this.server.socket.open();
    this.server.socket.deliver(serverMessage.initialConnection());
  }

  register(querySetId: number, texts: readonly string[]): { table: TableName; rows: Uint8Array[] } {
    const queries = texts.map(parseSql);
    this.model.sets.set(querySetId, queries);
    const rows = queries.flatMap(({ table, range }) => this.model.selected(table, range)).map(personBytes);
    return { table: queries[0]!.table, rows };
  }

  /** Answers what the client asked for, in order. */
  answer(): void {
    for (const request of this.server.socket.take()) {
      if (request.tag === "Subscribe") {
        const { table, rows } = this.register(request.querySetId, request.queries);
        this.server.socket.deliver(
          serverMessage.subscribeApplied(request.requestId, request.querySetId, table, rows),
        );
      } else if (request.tag === "SubscribeBatch") {
        const results = request.sets.map(({ querySetId, queries }) => {
          const registered = this.register(querySetId, queries);
          return { querySetId, ...registered };
        });
        this.server.socket.deliver(serverMessage.subscribeBatchApplied(request.requestId, results));
      } else if (request.tag === "Unsubscribe") {
        const queries = this.model.sets.get(request.querySetId)!;
        const rows = queries
          .flatMap(({ table, range }) => this.model.selected(table, range))
          .map(personBytes);
        this.model.sets.delete(request.querySetId);
        this.server.socket.deliver(
          serverMessage.unsubscribeApplied(request.requestId, request.querySetId, queries[0]!.table, rows),
        );
      }
    }
  }

  /** Deltas of every query of every set: bags, as the protocol has them. */
  transact(operations: readonly Operation[]): SetDelta[] {
    const before = { person: [...this.model.rows.person], mark: [...this.model.rows.mark] };
    for (const operation of operations) applyOperation(this.model.rows, operation);
    const deltas: SetDelta[] = [];
    for (const [querySetId, queries] of this.model.sets) {
      for (const { table, range } of queries) {
        const was = new Map(before[table].map((row) => [keyOf(row), row]));
        const is = new Map(this.model.rows[table].map((row) => [keyOf(row), row]));
        const isIn = ({ id }: PersonRow): boolean => id >= range.from && id <= range.to;
        const inserts = [...is]
          .filter(([key, row]) => !was.has(key) && isIn(row))
          .map(([, row]) => personBytes(row));
        const deletes = [...was]
          .filter(([key, row]) => !is.has(key) && isIn(row))
          .map(([, row]) => personBytes(row));
        if (inserts.length + deletes.length > 0) deltas.push({ querySetId, table, inserts, deletes });
      }
    }
    return deltas;
  }

  /** The cache has the rows of the model, and the callbacks were the difference to `before`. */
  check(before: Record<TableName, Map<string, PersonRow>>): void {
    for (const table of TABLES) {
      const now = this.model.visible(table);
      const cached = [...this.connection.db[table].iter()].map(keyOf);
      expect(cached.sort()).toEqual([...now.keys()].sort());
      expect(this.connection.db[table].count()).toBe(BigInt(now.size));
      const gone = [...before[table]].filter(([key]) => !now.has(key));
      const come = [...now].filter(([key]) => !before[table].has(key));
      const expected: string[] = [];
      for (const [key, row] of gone) {
        const next = table === "person" ? come.find(([, other]) => other.id === row.id) : undefined;
        expected.push(next ? `${key}>${next[0]}` : `-${key}`);
      }
      for (const [key, row] of come) {
        const isUpdate = table === "person" && gone.some(([, other]) => other.id === row.id);
        if (!isUpdate) expected.push(`+${key}`);
      }
      expect(this.changes[table].splice(0).sort()).toEqual(expected.sort());
    }
    this.views.forEach(({ view, told }, i) => {
      const { table, holds } = VIEWS[i]!;
      const expected = [...this.connection.db[table].iter()].filter(holds);
      expect(view.rows).toHaveLength(expected.length);
      expect(new Set(view.rows)).toEqual(new Set(expected));
      expect(told).toBe(view.rows);
    });
    for (const row of this.connection.db.person.iter()) {
      expect(this.connection.db.person.id.find(row.id)).toBe(row);
      expect([...this.connection.db.person.byName.filter(row.name)]).toContain(row);
      expect([...this.connection.db.person.byNameAndId.filter([row.name, row.id])]).toEqual([row]);
    }
  }

  async run(step: Step): Promise<void> {
    const before = { person: this.model.visible("person"), mark: this.model.visible("mark") };
    if (step.kind === "transaction") {
      const call = step.byCaller ? this.connection.reducers.tick({}) : undefined;
      await settle();
      const [request] = this.server.socket.take();
      const deltas = this.transact(step.operations);
      if (call) {
        this.server.socket.deliver(serverMessage.reducerOk(request!.requestId, deltas));
        await call;
      } else if (deltas.length > 0) {
        this.server.socket.deliver(serverMessage.transactionUpdate(deltas));
      }
    } else if (step.kind === "subscribe") {
      const queries = step.ranges.map((range) => sqlOf(step.table, range));
      this.handles.push(this.connection.subscriptionBuilder().subscribe(queries));
      await settle();
      this.answer();
    } else if (step.kind === "unsubscribe") {
      const [handle] = this.handles.splice(step.which % Math.max(1, this.handles.length), 1);
      handle?.unsubscribe();
      await settle();
      this.answer();
    } else {
      const sockets = this.server.sockets.length;
      this.server.socket.drop();
      if (step.unsubscribe) this.handles.pop()?.unsubscribe();
      this.transact(step.meanwhile);
      this.model.sets.clear();
      while (this.server.sockets.length === sockets) await settle();
      this.server.socket.open();
      this.server.socket.deliver(serverMessage.initialConnection());
      this.answer();
    }
    await settle();
    this.check(before);
  }
}

test("cache and callbacks agree with a naive model", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
      const simulation = new Simulation();
      await simulation.connect();
      await settle();
      for (const step of steps) await simulation.run(step);
      simulation.connection.disconnect();
    }),
    { numRuns: Number(process.env.LIGHTCONE_MODEL_RUNS ?? 60) },
  );
}, 120_000);
