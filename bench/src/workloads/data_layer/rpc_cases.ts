// data-layer behind `POST /rpc`, and through an ORM without HTTP.

import type { Connector, ConnectorDefinition } from "../../connectors/connector";
import { poolOf, definition as postgresDirect } from "../../connectors/postgres_direct";
import { postgresDrizzleNotes } from "../../rpc-servers/notes/postgres_store";
import { perConnection } from "../per_connection";
import type { WorkloadCase } from "../workload";
import type { Note, NoteStore, NoteWithTags } from "./store";
import { noteOps } from "./workload";

function rpcNotes(connection: Connector): NoteStore {
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

const rpcCase = (system: string, label: string): WorkloadCase => ({
  system,
  label,
  ops: noteOps(perConnection(rpcNotes)),
});

export const postgresRpcNotes = rpcCase("postgres_rpc", "Node.js + Postgres");
export const sqliteRpcNotes = rpcCase("sqlite_rpc", "Node.js + SQLite");
export const bunNotes = rpcCase("bun", "Bun + Postgres");

/** `postgres_direct` through an ORM. */
export const drizzleDirect: ConnectorDefinition = {
  ...postgresDirect,
  key: "postgres_drizzle_direct",
  async prepare(context) {
    const prepared = await postgresDirect.prepare(context);
    Object.assign(prepared.fairness, { orm: "Drizzle" });
    return prepared;
  },
};

export const postgresDrizzleNotesCase: WorkloadCase = {
  system: "postgres_drizzle_direct",
  label: "Drizzle + node-postgres",
  ops: noteOps(perConnection((connection) => postgresDrizzleNotes(poolOf(connection)))),
  definition: drizzleDirect,
};
