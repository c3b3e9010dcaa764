// content-crud on systems behind `POST /rpc`, and on Convex, whose functions have the same names (section 16.3).

import { type Content, type ContentClient, contentOps } from "./workload";

const client: ContentClient = {
  async create(connection, content) {
    const { id } = (await connection.call("content_create", { ...content })) as { id: unknown };
    if (typeof id !== "string") throw new Error("the new record has no id");
    return id;
  },
  async read(connection, id) {
    return ((await connection.call("content_get", { id })) as Partial<Content> | null | undefined) ?? null;
  },
  async update(connection, id, change) {
    const updated = await connection.call("content_update", { id, ...change });
    if (updated === null || updated === undefined) throw new Error(`there is no content ${id} to change`);
  },
  async delete(connection, id) {
    if ((await connection.call("content_delete", { id })) !== true)
      throw new Error(`there is no content ${id} to delete`);
  },
  async clear(connection) {
    await connection.call("content_clear");
  },
};

export const contentRpcOps = contentOps(client);
