// data-layer with all notes in the client's cache (section 18.1): reads ask nobody, writes are those of every client.

import type { Connector } from "../../connectors/connector";
import { cachedTable, follow, RowsByKey } from "../cached_table";
import { perConnection } from "../per_connection";
import { sdkNotes } from "./sdk";
import type { Note, NoteStore } from "./store";

interface NoteRow {
  id: bigint;
  title: string;
  deleted: boolean;
}

interface TagRow {
  id: bigint;
  noteId: bigint;
  name: string;
}

/** What the client keeps of the tables besides their rows, by their callbacks. */
class NoteCache {
  readonly notes: RowsByKey<NoteRow, bigint>;
  readonly #tags = new Map<bigint, Map<bigint, string>>();
  #live = 0;

  constructor(connection: Connector) {
    const notes = cachedTable<NoteRow>(connection, "note");
    this.notes = new RowsByKey(notes, ({ id }) => id);
    follow(
      notes,
      ({ deleted }) => (this.#live += Number(!deleted)),
      ({ deleted }) => (this.#live -= Number(!deleted)),
    );
    follow(
      cachedTable<TagRow>(connection, "tag"),
      ({ id, noteId, name }) => {
        let tags = this.#tags.get(noteId);
        if (!tags) this.#tags.set(noteId, (tags = new Map()));
        tags.set(id, name);
      },
      ({ id, noteId }) => this.#tags.get(noteId)?.delete(id),
    );
  }

  /** Ids follow the first one by one. */
  get distance(): bigint {
    return (this.notes.keys[0] ?? 1n) - 1n;
  }

  get live(): number {
    return this.#live;
  }

  newest(limit: number): NoteRow[] {
    const { keys } = this.notes;
    const rows: NoteRow[] = [];
    for (let index = keys.length - 1; index >= 0 && rows.length < limit; index--) {
      const row = this.notes.get(keys[index]!)!;
      if (!row.deleted) rows.push(row);
    }
    return rows;
  }

  tagsOf(id: bigint): string[] {
    return [...(this.#tags.get(id)?.values() ?? [])];
  }
}

const cacheOf = perConnection((connection) => new NoteCache(connection));

export function cachedNotes(connection: Connector): NoteStore {
  const cache = cacheOf(connection);
  const noteOf = ({ id, title, deleted }: NoteRow): Note => ({
    id: Number(id - cache.distance),
    title,
    deleted,
  });
  return {
    ...sdkNotes(connection),
    findMany: (limit) => cache.newest(limit).map(noteOf),
    get(id) {
      const row = cache.notes.get(BigInt(id) + cache.distance);
      return row ? noteOf(row) : undefined;
    },
    count: () => cache.live,
    findInclude: (limit) =>
      cache.newest(limit).map((row) => ({ ...noteOf(row), tags: cache.tagsOf(row.id) })),
  };
}
