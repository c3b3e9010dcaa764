// Notes, their tags, and a log of what happened to them (section 18.1). Every write appends to the log in the same
// transaction.

import { type Answer, type RpcArguments, type RpcMethods, text, whole } from "../rpc";

export interface Note {
  id: number;
  title: string;
  deleted: boolean;
}

export interface NoteWithTags extends Note {
  tags: string[];
}

export const tagsPerNote = 3;

export interface NoteStore {
  /** Makes the tables if they are missing, and fills them: `notes` notes, of which the first `grouped` have the tag `group`. */
  seed(notes: number, grouped: number, group: string): Answer<void>;
  /** Answers the id. */
  create(title: string): Answer<number>;
  /** Without the log. */
  createBare(title: string): Answer<void>;
  createMany(titles: string[]): Answer<void>;
  update(id: number, title: string): Answer<void>;
  delete(id: number): Answer<void>;
  /** All notes that have the tag, with one entry of the log. */
  updateMany(tag: string, title: string): Answer<void>;
  deleteMany(tag: string): Answer<void>;
  /** The newest live notes. */
  findMany(limit: number): Answer<Note[]>;
  get(id: number): Answer<Note | undefined>;
  /** Live notes. */
  count(): Answer<number>;
  findInclude(limit: number): Answer<NoteWithTags[]>;
  /** Entries of the log. */
  events(): Answer<number>;
}

const rowsPerCallMax = 10_000;

/** The RPC methods of the notes. */
export function noteMethods(store: NoteStore): RpcMethods {
  const limit = (args: RpcArguments) => whole(args, "limit", rowsPerCallMax);
  return {
    note_seed: (args) => store.seed(whole(args, "notes"), whole(args, "grouped"), text(args, "group")),
    note_create: (args) => store.create(text(args, "title")),
    note_create_bare: (args) => store.createBare(text(args, "title")),
    note_create_many(args) {
      const n = whole(args, "n", rowsPerCallMax);
      return store.createMany(Array.from({ length: n }, (_, index) => `one of many ${index}`));
    },
    note_update: (args) => store.update(whole(args, "id"), text(args, "title")),
    note_delete: (args) => store.delete(whole(args, "id")),
    note_update_many: (args) => store.updateMany(text(args, "tag"), text(args, "title")),
    note_delete_many: (args) => store.deleteMany(text(args, "tag")),
    note_find_many: (args) => store.findMany(limit(args)),
    note_get: (args) => store.get(whole(args, "id")),
    note_count: () => store.count(),
    note_find_include: (args) => store.findInclude(limit(args)),
    note_events: () => store.events(),
  };
}
