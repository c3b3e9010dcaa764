// Notes, their tags, and a log of what happened to them (section 18.1). Every write appends to the log in the same
// transaction.

export interface Note {
  id: number;
  title: string;
  deleted: boolean;
}

export interface NoteWithTags extends Note {
  tags: string[];
}

export const tagsPerNote = 3;

/** Asynchronous or not: an in-process database answers at once. */
type Answer<T> = T | Promise<T>;

export interface NoteStore {
  /** Makes the tables if they are missing, and fills them: `notes` notes, of which the first `grouped` have the tag `group`. */
  seed(notes: number, grouped: number, group: string): Answer<void>;
  /** The id, where the way of asking answers it. */
  create(title: string): Answer<number | undefined>;
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
