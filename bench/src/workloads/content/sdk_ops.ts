// content-crud on the modules `content-ts` and `content-rs`, by a client SDK: reducers, and a procedure to read
// (section 16.3).

import { ulid } from "./ulid";
import { type Content, type ContentClient, contentOps } from "./workload";

const client: ContentClient = {
  async create(connection, { data, ...content }) {
    const id = ulid();
    const text = data === undefined ? undefined : JSON.stringify(data);
    await connection.call("contentCreate", { ...content, id, data: text });
    return id;
  },
  async read(connection, id) {
    return ((await connection.call("contentGet", { id })) as Partial<Content> | undefined) ?? null;
  },
  async update(connection, id, change) {
    await connection.call("contentUpdate", { id, ...change });
  },
  async delete(connection, id) {
    await connection.call("contentDelete", { id });
  },
  async clear(connection) {
    await connection.call("contentClear");
  },
};

export const contentSdkOps = contentOps(client);
