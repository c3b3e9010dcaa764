// data-layer on the modules `notes-ts` and `notes-rs`, by a client SDK: every operation is a round trip to the server.

import type { Connector } from "../../connectors/connector";
import type { Note, NoteStore, NoteWithTags } from "./store";

/** Ids of the server follow those of the workload, which begin at 1, at a distance. */
const distances = new WeakMap<Connector, Promise<bigint>>();

function distanceOf(connection: Connector): Promise<bigint> {
  let distance = distances.get(connection);
  if (!distance) {
    distance = connection.call("noteFirst").then((first) => (first as bigint) - 1n);
    distances.set(connection, distance);
  }
  return distance;
}

interface Row {
  id: bigint;
  title: string;
  deleted: boolean;
}

export function sdkNotes(connection: Connector): NoteStore {
  const idOf = async (id: number) => BigInt(id) + (await distanceOf(connection));
  const noteOf = async ({ id, title, deleted }: Row): Promise<Note> => ({
    id: Number(id - (await distanceOf(connection))),
    title,
    deleted,
  });
  const call = (name: string, args: Record<string, unknown> = {}) => connection.call(name, args);
  const number = async (name: string) => Number(await call(name));
  return {
    async seed(notes, grouped, group) {
      await call("noteSeed", { notes, grouped, group });
      distances.delete(connection);
    },
    async create(title) {
      await call("noteCreate", { title });
      return undefined;
    },
    async createBare(title) {
      await call("noteCreateBare", { title });
    },
    async createMany(titles) {
      await call("noteCreateMany", { n: titles.length });
    },
    async update(id, title) {
      await call("noteUpdate", { id: await idOf(id), title });
    },
    async delete(id) {
      await call("noteDelete", { id: await idOf(id) });
    },
    async updateMany(tag, title) {
      await call("noteUpdateMany", { tag, title });
    },
    async deleteMany(tag) {
      await call("noteDeleteMany", { tag });
    },
    findMany: async (limit) => Promise.all(((await call("noteFindMany", { limit })) as Row[]).map(noteOf)),
    async get(id) {
      const row = (await call("noteGet", { id: await idOf(id) })) as Row | undefined;
      return row && noteOf(row);
    },
    count: () => number("noteCount"),
    async findInclude(limit): Promise<NoteWithTags[]> {
      const rows = (await call("noteFindInclude", { limit })) as (Row & { tags: string[] })[];
      return Promise.all(rows.map(async (row) => ({ ...(await noteOf(row)), tags: row.tags })));
    },
    events: () => number("noteEvents"),
  };
}
