// content-crud by the ways of asking (section 16.3): RPC methods, also of Convex, the modules `content-ts` and `content-rs`,
// and REST.

import type { CallArguments, Connector } from "../../connectors/connector";
import { RestConnector } from "../../connectors/rest";
import { ulid } from "../../rpc-servers/content/ulid";
import { call, done, type Judge } from "../calls";
import type { RunOperation } from "../workload";
import type { Content } from "./workload";

/** What was found must be as expected; null: nothing. */
const asExpected: Judge = (answer, args) => {
  const found = (answer ?? null) as Partial<Content> | null;
  const expected = args["expected"] as Content | null;
  const isSame = (name: keyof Content) => found?.[name] === expected?.[name];
  const isRight =
    found === null || expected === null
      ? found === expected
      : (["title", "body", "author", "status"] as const).every(isSame);
  if (isRight) return { ok: true };
  throw new Error(`read ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`.slice(0, 200));
};

const created: Judge = (answer) => {
  const id = (answer as { id?: unknown } | undefined)?.id;
  if (typeof id !== "string" && typeof id !== "number") throw new Error("the new record has no id");
  return { ok: true, found: String(id) };
};

const wasThere =
  (what: string): Judge =>
  (answer, { id }) => {
    if (!answer) throw new Error(`there is no content ${id} to ${what}`);
    return { ok: true };
  };

const withId = ({ id }: CallArguments) => ({ id });
const withChange = ({ id, change }: CallArguments) => ({ id, ...(change as object) });

export const contentRpcOps: Record<string, RunOperation> = {
  create: call("content_create", created, ({ content }) => content as CallArguments),
  read: call("content_get", asExpected, withId),
  update: call("content_update", wasThere("change"), withChange),
  delete: call("content_delete", wasThere("delete"), withId),
  clear: call("content_clear"),
};

/** Reducers answer nothing, so that the client makes the id. */
export const contentSdkOps: Record<string, RunOperation> = {
  ...contentRpcOps,
  async create(connection, { content }) {
    const id = ulid();
    const { data, ...columns } = content as Content;
    const text = data === undefined ? undefined : JSON.stringify(data);
    await connection.call("content_create", { ...columns, id, data: text });
    return { ok: true, found: id };
  },
  update: call("content_update", done, withChange),
  delete: call("content_delete", done, withId),
};

async function request(
  connection: Connector,
  method: string,
  path: string,
  statuses: number[],
  body?: unknown,
): Promise<{ status: number; body: unknown }> {
  if (!(connection instanceof RestConnector)) throw new Error(`${connection.name} does not speak REST`);
  const answer = await connection.request(method, path, body);
  if (statuses.includes(answer.status)) return answer;
  throw new Error(
    `${connection.name}: ${method} answered ${answer.status} instead of ${statuses.join(" or ")}`,
  );
}

/** `pathOf` says how a server wants to be told the id. */
const restOps = (pathOf: (id: string) => string): Record<string, RunOperation> => ({
  async create(connection, args) {
    return created((await request(connection, "POST", "/content", [200, 201], args["content"])).body, args);
  },
  async read(connection, args) {
    const { status, body } = await request(connection, "GET", pathOf(String(args["id"])), [200, 404]);
    return asExpected(status === 404 ? null : body, args);
  },
  async update(connection, args) {
    return done(await request(connection, "PUT", pathOf(String(args["id"])), [200], args["change"]), args);
  },
  async delete(connection, args) {
    return done(await request(connection, "DELETE", pathOf(String(args["id"])), [200, 204]), args);
  },
  /** Such a server is started empty. */
  clear: async () => ({ ok: true }),
});

export const contentRestOps = restOps((id) => `/content/${encodeURIComponent(id)}`);

/** Routes of a module have no parameters: the id is in the query. */
export const routePathOf = (id: string) => `/content?id=${encodeURIComponent(id)}`;
export const contentRoutesOps = restOps(routePathOf);
