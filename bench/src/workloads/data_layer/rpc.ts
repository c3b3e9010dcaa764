// Notes behind `POST /rpc`.

import type { Connector } from "../../connectors/connector";
import type { Note, NoteStore, NoteWithTags } from "./store";

export function rpcNotes(connection: Connector): NoteStore {
  const call = async (name: string, args: Record<string, unknown> = {}): Promise<void> => {
    await connection.call(name, args);
  };
  return {
    seed: (notes, grouped, group) => call("note_seed", { notes, grouped, group }),
    create: async (title) => (await connection.call("note_create", { title })) as number,
    createBare: (title) => call("note_create_bare", { title }),
    createMany: (titles) => call("note_create_many", { n: titles.length }),
    update: (id, title) => call("note_update", { id, title }),
    delete: (id) => call("note_delete", { id }),
    updateMany: (tag, title) => call("note_update_many", { tag, title }),
    deleteMany: (tag) => call("note_delete_many", { tag }),
    findMany: async (limit) => (await connection.call("note_find_many", { limit })) as Note[],
    get: async (id) => ((await connection.call("note_get", { id })) as Note | null) ?? undefined,
    count: async () => (await connection.call("note_count")) as number,
    findInclude: async (limit) => (await connection.call("note_find_include", { limit })) as NoteWithTags[],
    events: async () => (await connection.call("note_events")) as number,
  };
}
