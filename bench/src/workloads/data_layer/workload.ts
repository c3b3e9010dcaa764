// data-layer (section 18): one client, one operation at a time, and what each operation takes.

import type { Config } from "../../config";
import type { Connector } from "../../connectors/connector";
import type { Outcome, RunOperation, Workload, WorkloadRun } from "../workload";
import { type Step, serialRun } from "./serial";
import { type NoteStore, tagsPerNote } from "./store";

const notesMax = 2_000;
const groupNotes = 500;
const group = "group";
const rowsPerCreateMany = 100;
const pageNotes = 20;

const noteId = (iteration: number) => 1 + (iteration % notesMax);

/** Reads come first, while every note has its tags. */
const steps: readonly Step[] = [
  { kind: "find_many", rows: 1, events: 0, args: () => ({ limit: pageNotes }), loopOperation: 1 },
  {
    kind: "find_unique",
    rows: 1,
    events: 0,
    args: (iteration) => ({ id: noteId(iteration * 7) }),
    loopOperation: 2,
  },
  { kind: "count", rows: 1, events: 0, args: () => ({}), loopOperation: 3 },
  {
    kind: "find_many_include",
    rows: 1,
    events: 0,
    args: () => ({ limit: pageNotes }),
    loopOperation: 4,
  },
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
    before: () => ({ kind: "create_bare", args: { title: "between" } }),
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

const createRun = (config: Config): WorkloadRun =>
  serialRun({
    config,
    steps,
    rows: notesMax,
    verify: async ({ run }, { events: expected }) => {
      // The last writes are there: the notes of the group are deleted, others are not.
      await run("find_deleted", { id: groupNotes, deleted: true });
      const events = Number((await run("events")).found);
      return {
        ok: events === expected,
        message: `the log has ${events} entries${events === expected ? "" : ` instead of ${expected}`}`,
      };
    },
  });

export const dataLayerWorkload: Workload = {
  name: "data-layer",
  samples: 1,
  runs: (config) => [{ label: "one operation at a time", create: () => createRun(config) }],
};
