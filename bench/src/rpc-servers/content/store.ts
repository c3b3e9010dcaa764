// Content as servers keep it (section 16.2), and its RPC methods.

import { type Answer, BadArguments, type RpcArguments, type RpcMethods } from "../rpc";
import { ulid } from "./ulid";

export interface ContentRecord {
  id: string;
  title: string;
  body: string;
  author: string | null;
  status: string | null;
  /** Any JSON. */
  data: unknown;
  created_at: string;
  updated_at: string;
}

export type ContentChange = Partial<Pick<ContentRecord, "title" | "body" | "author" | "status" | "data">>;

export interface ContentStore {
  /** Makes the table if it is missing, and empties it. */
  clear(): Answer<void>;
  create(record: ContentRecord): Answer<void>;
  read(id: string): Answer<ContentRecord | undefined>;
  /** The record as it is now; undefined if there is none. */
  update(id: string, change: ContentChange): Answer<ContentRecord | undefined>;
  /** Whether there was one. */
  delete(id: string): Answer<boolean>;
}

const textColumns = ["title", "body", "author", "status"] as const;

/** The columns that a request may set; anything else is left out. */
export function changeFrom(fields: RpcArguments): ContentChange {
  const change: ContentChange = {};
  for (const name of textColumns) {
    const value = fields[name];
    if (value === undefined) continue;
    if (typeof value !== "string") throw new BadArguments(`${name} is no text`);
    change[name] = value;
  }
  if (fields["data"] !== undefined) change.data = fields["data"];
  return change;
}

/** A new record, with an id of the server. */
export function recordFrom(fields: RpcArguments): ContentRecord {
  const { title, body, author = null, status = null, data = null } = changeFrom(fields);
  if (title === undefined || body === undefined) throw new BadArguments("title and body are needed");
  const now = new Date().toISOString();
  return { id: ulid(), title, body, author, status, data, created_at: now, updated_at: now };
}

function idOf(args: RpcArguments): string {
  if (typeof args["id"] !== "string") throw new BadArguments("invalid id");
  return args["id"];
}

export function contentMethods(store: ContentStore): RpcMethods {
  return {
    content_clear: () => store.clear(),
    async content_create(args) {
      const record = recordFrom(args);
      await store.create(record);
      return record;
    },
    content_get: async (args) => (await store.read(idOf(args))) ?? null,
    content_update: async (args) => (await store.update(idOf(args), changeFrom(args))) ?? null,
    content_delete: (args) => store.delete(idOf(args)),
  };
}
