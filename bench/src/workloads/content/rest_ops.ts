// content-crud over REST (section 16.3).

import type { Connector } from "../../connectors/connector";
import { RestConnector } from "../../connectors/rest";
import { type Content, type ContentClient, contentOps } from "./workload";

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
