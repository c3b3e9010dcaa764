// data-layer (section 18): one client, one operation at a time, and what each operation takes.

import type { Config } from "../../config";
import type { Connector } from "../../connectors/connector";
import { formatInteger, formatLatency } from "../../report/format";
import type { Measurement } from "../measurement";
import type { Operation, Outcome, RunNamed, RunOperation, Verdict, Workload, WorkloadRun } from "../workload";
import { type NoteStore, tagsPerNote } from "./store";

const defaultIterations = 2_000;
const warmupIterations = 200;
/** Operations over many rows are repeated less often by this factor. */
const manyRowsDivisor = 20;
const notesMax = 2_000;
const groupNotes = 500;
const group = "group";
const rowsPerCreateMany = 100;
const pageNotes = 20;

interface Step {
  kind: string;
  /** Rows that one operation is about: figures are given per row. */
  rows: number;
  /** Entries of the log that one operation makes. */
  events: number;
  args(iteration: number): Record<string, unknown>;
  /** Something is written before each operation, unmeasured: no answer may be one of before. */
  writesBetween?: boolean;
}

const noteId = (iteration: number) => 1 + (iteration % notesMax);

/** Reads come first, while every note has its tags. */
const steps: readonly Step[] = [
  { kind: "find_many", rows: 1, events: 0, args: () => ({ limit: pageNotes }) },
  { kind: "find_unique", rows: 1, events: 0, args: (iteration) => ({ id: noteId(iteration * 7) }) },
  { kind: "count", rows: 1, events: 0, args: () => ({}) },
  { kind: "find_many_include", rows: 1, events: 0, args: () => ({ limit: pageNotes }) },
  { kind: "create", rows: 1, events: 1, args: (iteration) => ({ title: `created ${iteration}` }) },
  { kind: "create_bare", rows: 1, events: 0, args: (iteration) => ({ title: `bare ${iteration}` }) },
  {
    kind: "create_many",
    rows: rowsPerCreateMany,
    events: rowsPerCreateMany,
    args: () => ({ titles: Array.from({ length: rowsPerCreateMany }, (_, row) => `one of many ${row}`) }),
  },
  {
    kind: "update_one",
    rows: 1,
    events: 1,
    args: (iteration) => ({ id: noteId(iteration), title: "updated" }),
  },
  { kind: "delete_one", rows: 1, events: 1, args: (iteration) => ({ id: noteId(iteration) }) },
  {
    kind: "update_many",
    rows: groupNotes,
    events: 1,
    args: (iteration) => ({ tag: group, title: `updated ${iteration}` }),
  },
  { kind: "delete_many", rows: groupNotes, events: 1, args: () => ({ tag: group }) },
  {
    kind: "find_many_eventual",
    rows: 1,
    events: 0,
    args: () => ({ limit: pageNotes }),
    writesBetween: true,
  },
];

const expect = (isRight: boolean, what: string): Outcome => {
  if (!isRight) throw new Error(`the answer is wrong: ${what}`);
  return { ok: true };
};

/** Operations on a store, each of which looks at its answer. */
export function noteOps(storeOf: (connection: Connector) => NoteStore): Record<string, RunOperation> {
  const done = (): Outcome => ({ ok: true });
  const findMany: RunOperation = async (connection, { limit }) => {
    const notes = await storeOf(connection).findMany(Number(limit));
    return expect(notes.length === limit && notes.every(({ deleted }) => !deleted), "find_many");
  };
  return {
    seed: async (connection) => {
      await storeOf(connection).seed(notesMax, groupNotes, group);
      return done();
    },
    create: async (connection, { title }) => {
      await storeOf(connection).create(String(title));
      return done();
    },
    create_bare: async (connection, { title }) => {
      await storeOf(connection).createBare(String(title));
      return done();
    },
    create_many: async (connection, { titles }) => {
      await storeOf(connection).createMany(titles as string[]);
      return done();
    },
    update_one: async (connection, { id, title }) => {
      await storeOf(connection).update(Number(id), String(title));
      return done();
    },
    delete_one: async (connection, { id }) => {
      await storeOf(connection).delete(Number(id));
      return done();
    },
    update_many: async (connection, { tag, title }) => {
      await storeOf(connection).updateMany(String(tag), String(title));
      return done();
    },
    delete_many: async (connection, { tag }) => {
      await storeOf(connection).deleteMany(String(tag));
      return done();
    },
    find_many: findMany,
    find_many_eventual: findMany,
    find_unique: async (connection, { id }) =>
      expect((await storeOf(connection).get(Number(id)))?.id === id, "find_unique"),
    find_deleted: async (connection, { id, deleted }) =>
      expect((await storeOf(connection).get(Number(id)))?.deleted === deleted, "find_deleted"),
    count: async (connection) => expect((await storeOf(connection).count()) > 0, "count"),
    find_many_include: async (connection, { limit }) => {
      const notes = await storeOf(connection).findInclude(Number(limit));
      const isRight = notes.length === limit && notes.every(({ tags }) => tags.length === tagsPerNote);
      return expect(isRight, "find_many_include");
    },
    events: async (connection) => ({ ok: true, found: await storeOf(connection).events() }),
  };
}

/** Per row, in microseconds. */
function table(measurement: Measurement): string {
  const header = "| Operation | mean µs | p50 | p95 | p99 | per second |\n|---|---|---|---|---|---|";
  const lines = steps.flatMap(({ kind, rows }) => {
    const result = measurement.kinds.get(kind);
    if (!result || result.ok === 0) return [`| ${kind} | – | – | – | – | – |`];
    const { mean_ms, p50_ms, p95_ms, p99_ms } = result.histogram.summary();
    const figures = [mean_ms, p50_ms, p95_ms, p99_ms].map((ms) => formatLatency((ms * 1000) / rows));
    const name = rows === 1 ? kind : `${kind}, per row (${rows})`;
    return [`| ${name} | ${figures.join(" | ")} | ${formatInteger((1000 * rows) / mean_ms)} |`];
  });
  return [header, ...lines].join("\n");
}

function createRun(config: Config): WorkloadRun {
  const iterations = config.iters ?? defaultIterations;
  let context: { root: Connector; run: RunNamed } | undefined;
  let expectedEvents = 0;

  const perform = async (measurement: Measurement, step: Step): Promise<void> => {
    const { root, run } = context!;
    const divisor = step.rows === 1 ? 1 : manyRowsDivisor;
    const warmups = Math.min(iterations, Math.ceil(warmupIterations / divisor));
    const repetitions = Math.max(1, Math.floor(iterations / divisor));
    const operation = (iteration: number): Operation => ({ kind: step.kind, args: step.args(iteration) });
    for (let iteration = 0; iteration < warmups; iteration++) {
      await run(root, step.kind, operation(iteration).args);
      expectedEvents += step.events;
    }
    for (let iteration = 0; iteration < repetitions; iteration++) {
      if (step.writesBetween) await run(root, "create_bare", { title: "between" });
      const outcome = await measurement.perform(0, operation(iteration));
      if (outcome) expectedEvents += step.events;
    }
  };

  return {
    parameters: { iterations },
    limit: { mode: "drain" },
    concurrency: 1,
    load: async (root, run) => {
      context = { root, run };
      const start = performance.now();
      await run(root, "seed");
      const seconds = (performance.now() - start) / 1000;
      return { rows: notesMax, seconds, rows_per_s: notesMax / seconds };
    },
    generator: () => ({ next: () => undefined }),
    drive: async (measurement) => {
      for (const step of steps) await perform(measurement, step);
    },
    closingLine: table,
    verify: async (root, run): Promise<Verdict> => {
      // The last writes are there: the notes of the group are deleted, others are not.
      await run(root, "find_deleted", { id: groupNotes, deleted: true });
      const events = Number((await run(root, "events")).found);
      return {
        ok: events === expectedEvents,
        message: `the log has ${events} entries${events === expectedEvents ? "" : ` instead of ${expectedEvents}`}`,
      };
    },
  };
}

export const dataLayerWorkload: Workload = {
  name: "data-layer",
  samples: 1,
  runs: (config) => [{ label: "one operation at a time", create: () => createRun(config) }],
};
