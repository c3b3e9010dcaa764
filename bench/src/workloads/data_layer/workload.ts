// data-layer (section 18): one client, one operation at a time, and what each operation takes.

import type { Config } from "../../config";
import type { CallArguments, Connector } from "../../connectors/connector";
import { type Note, type NoteWithTags, tagsPerNote } from "../../rpc-servers/notes/store";
import { type Ask, callsBy, done, found, right } from "../calls";
import type { RunOperation, Workload, WorkloadRun } from "../workload";
import { read, type Step, serialRun, write } from "./serial";

const notesMax = 2_000;
const groupNotes = 500;
const group = "group";
const rowsPerCreateMany = 100;
const pageNotes = 20;

const noteId = (iteration: number) => 1 + (iteration % notesMax);

/** Reads come first, while every note has its tags. */
const steps: readonly Step[] = [
  read("find_many", () => ({ limit: pageNotes }), 1),
  read("find_unique", (iteration) => ({ id: noteId(iteration * 7) }), 2),
  read("count", () => ({}), 3),
  read("find_many_include", () => ({ limit: pageNotes }), 4),
  write("create", (iteration) => ({ title: `created ${iteration}` })),
  // Without an entry of the log.
  read("create_bare", (iteration) => ({ title: `bare ${iteration}` })),
  {
    kind: "create_many",
    rows: rowsPerCreateMany,
    events: rowsPerCreateMany,
    args: () => ({ n: rowsPerCreateMany }),
  },
  write("update_one", (iteration) => ({ id: noteId(iteration), title: "updated" })),
  write("delete_one", (iteration) => ({ id: noteId(iteration) })),
  {
    ...write("update_many", (iteration) => ({ tag: group, title: `updated ${iteration}` })),
    rows: groupNotes,
  },
  { ...write("delete_many", () => ({ tag: group })), rows: groupNotes },
  {
    ...read("find_many_eventual", () => ({ limit: pageNotes })),
    before: () => ({ kind: "create_bare", args: { title: "between" } }),
  },
];

/** Each looks at its answer. */
export function noteOps(askOf: (connection: Connector) => Ask): Record<string, RunOperation> {
  const call = callsBy(askOf);
  const findMany = call(
    "note_find_many",
    right<Note[]>("find_many", (notes, { limit }) => {
      return notes.length === limit && notes.every(({ deleted }) => !deleted);
    }),
  );
  const get = (what: string, isRight: (note: Note | undefined | null, args: CallArguments) => boolean) =>
    call("note_get", right(what, isRight), ({ id }) => ({ id }));
  return {
    seed: call("note_seed", done, () => ({ notes: notesMax, grouped: groupNotes, group })),
    create: call("note_create"),
    create_bare: call("note_create_bare"),
    create_many: call("note_create_many"),
    update_one: call("note_update"),
    delete_one: call("note_delete"),
    update_many: call("note_update_many"),
    delete_many: call("note_delete_many"),
    find_many: findMany,
    find_many_eventual: findMany,
    find_unique: get("find_unique", (note, { id }) => note?.id === id),
    find_deleted: get("find_deleted", (note, { deleted }) => note?.deleted === deleted),
    count: call(
      "note_count",
      right<number | bigint>("count", (count) => count > 0),
    ),
    find_many_include: call(
      "note_find_include",
      right<NoteWithTags[]>("find_many_include", (notes, { limit }) => {
        return notes.length === limit && notes.every(({ tags }) => tags.length === tagsPerNote);
      }),
    ),
    events: call("note_events", found),
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
