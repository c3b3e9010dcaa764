// data-layer (section 18): one client, one operation at a time, and what each operation takes.

import type { Config } from "../../config";
import type { Connector } from "../../connectors/connector";
import { operationsOn } from "../per_connection";
import type { RunOperation, Workload, WorkloadRun } from "../workload";
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

/** Operations on a store, each of which looks at its answer. */
export function noteOps(storeOf: (connection: Connector) => NoteStore): Record<string, RunOperation> {
  const { write, read, find } = operationsOn(storeOf);
  const findMany = read("find_many", async (store, { limit }) => {
    const notes = await store.findMany(Number(limit));
    return notes.length === limit && notes.every(({ deleted }) => !deleted);
  });
  return {
    seed: write((store) => store.seed(notesMax, groupNotes, group)),
    create: write((store, { title }) => store.create(String(title))),
    create_bare: write((store, { title }) => store.createBare(String(title))),
    create_many: write((store, { titles }) => store.createMany(titles as string[])),
    update_one: write((store, { id, title }) => store.update(Number(id), String(title))),
    delete_one: write((store, { id }) => store.delete(Number(id))),
    update_many: write((store, { tag, title }) => store.updateMany(String(tag), String(title))),
    delete_many: write((store, { tag }) => store.deleteMany(String(tag))),
    find_many: findMany,
    find_many_eventual: findMany,
    find_unique: read("find_unique", async (store, { id }) => (await store.get(Number(id)))?.id === id),
    find_deleted: read(
      "find_deleted",
      async (store, { id, deleted }) => (await store.get(Number(id)))?.deleted === deleted,
    ),
    count: read("count", async (store) => (await store.count()) > 0),
    find_many_include: read("find_many_include", async (store, { limit }) => {
      const notes = await store.findInclude(Number(limit));
      return notes.length === limit && notes.every(({ tags }) => tags.length === tagsPerNote);
    }),
    events: find((store) => store.events()),
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
