// content-crud by the ways of asking (section 16.3): RPC methods, also of Convex, the modules `content-ts` and `content-rs`,
// and REST.

import type { Connector } from "../../connectors/connector";
import { RestConnector } from "../../connectors/rest";
import { ulid } from "../../rpc-servers/content/ulid";
import { type Content, type ContentClient, contentOps } from "./workload";

const rpcClient: ContentClient = {
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

export const contentRpcOps = contentOps(rpcClient);

/** Reducers answer nothing, so that the client makes the id. */
const sdkClient: ContentClient = {
  ...rpcClient,
  async create(connection, { data, ...content }) {
    const id = ulid();
    const text = data === undefined ? undefined : JSON.stringify(data);
    await connection.call("content_create", { ...content, id, data: text });
    return id;
  },
  async update(connection, id, change) {
    await connection.call("content_update", { id, ...change });
  },
  async delete(connection, id) {
    await connection.call("content_delete", { id });
  },
};

export const contentSdkOps = contentOps(sdkClient);

function request(connection: Connector, method: string, path: string, statuses: number[], body?: unknown) {
  if (!(connection instanceof RestConnector)) throw new Error(`${connection.name} does not speak REST`);
  return connection.request(method, path, body).then((answer) => {
    if (statuses.includes(answer.status)) return answer;
    throw new Error(
      `${connection.name}: ${method} answered ${answer.status} instead of ${statuses.join(" or ")}`,
    );
  });
}

/** How a server wants to be told the id. */
type PathOf = (id: string) => string;

const pathWithId: PathOf = (id) => `/content/${encodeURIComponent(id)}`;

export const routePathOf: PathOf = (id) => `/content?id=${encodeURIComponent(id)}`;

const restClient = (pathOf: PathOf): ContentClient => ({
  async create(connection, content) {
    const { body } = await request(connection, "POST", "/content", [200, 201], content);
    const id = (body as { id?: unknown } | undefined)?.id;
    if (typeof id !== "string" && typeof id !== "number") throw new Error("the new record has no id");
    return String(id);
  },
  async read(connection, id) {
    const { status, body } = await request(connection, "GET", pathOf(id), [200, 404]);
    return status === 404 ? null : (body as Partial<Content>);
  },
  async update(connection, id, change) {
    await request(connection, "PUT", pathOf(id), [200], change);
  },
  async delete(connection, id) {
    await request(connection, "DELETE", pathOf(id), [200, 204]);
  },
});

export const contentRestOps = contentOps(restClient(pathWithId));

/** Routes of a module have no parameters: the id is in the query. */
export const contentRoutesOps = contentOps(restClient(routePathOf));
