// The RPC methods of data-layer (section 18.1), over whatever keeps the notes.

import type { NoteStore } from "../../workloads/data_layer/store";
import { BadArguments, type RpcArguments, type RpcMethods } from "../rpc";

const rowsPerCallMax = 10_000;

function whole(args: RpcArguments, name: string, most = Number.MAX_SAFE_INTEGER): number {
  const value = Number(args[name]);
  if (!Number.isSafeInteger(value) || value < 0 || value > most) throw new BadArguments(`invalid ${name}`);
  return value;
}

function text(args: RpcArguments, name: string): string {
  const value = args[name];
  if (typeof value !== "string" || value === "") throw new BadArguments(`invalid ${name}`);
  return value;
}

export function noteMethods(store: NoteStore): RpcMethods {
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
    note_find_many: (args) => store.findMany(whole(args, "limit", rowsPerCallMax)),
    note_get: async (args) => (await store.get(whole(args, "id"))) ?? null,
    note_count: () => store.count(),
    note_find_include: (args) => store.findInclude(whole(args, "limit", rowsPerCallMax)),
    note_events: () => store.events(),
  };
}
