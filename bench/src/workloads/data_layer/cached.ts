// data-layer with all notes in the client's cache (section 18.1): reads ask no server, writes are those of every client.

import type { CallArguments, Connector } from "../../connectors/connector";
import { cachedTable, follow, RowsByKey } from "../cached_table";
import { type Ask, perConnection } from "../calls";
import { sdkNotes } from "./sdk";

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

/** How a client with a cache is asked. */
export const cachedNotes = perConnection((connection): Ask => {
  const cache = new NoteCache(connection);
  const noteOf = ({ id, title, deleted }: NoteRow) => ({ id: Number(id - cache.distance), title, deleted });
  const reads: Record<string, (args: CallArguments) => unknown> = {
    note_find_many: ({ limit }) => cache.newest(Number(limit)).map(noteOf),
    note_get({ id }) {
      const row = cache.notes.get(BigInt(id as number) + cache.distance);
      return row && noteOf(row);
    },
    note_count: () => cache.live,
    note_find_include: ({ limit }) =>
      cache.newest(Number(limit)).map((row) => ({ ...noteOf(row), tags: cache.tagsOf(row.id) })),
  };
  const ask = sdkNotes(connection);
  return (name, args) => (reads[name] ? reads[name](args) : ask(name, args));
});
