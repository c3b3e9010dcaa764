// REST servers of content-crud: of this suite, or any other that --base-url names (section 16.3).

import { foundAt, isLocal, messageOf } from "../init/addresses";
import { type Back, noBacking, nodeCommand, sqliteBacking, startServerOn } from "../init/backing";
import { ownPostgres } from "../init/postgres_backing";
import { type Connector, NotRunning } from "./connector";
import { type ConnectorDefinition, fairnessOf } from "./definition";
import { preparedFrom } from "./described";
import { httpTransport, sendHttp } from "./http_client";

const defaultBaseUrl = "http://localhost:8888";

/** Speaks REST, and adds up what the server says of its own time. */
export class RestConnector implements Connector {
  readonly serverElapsed = { count: 0, sumMilliseconds: 0 };

  constructor(
    readonly name: string,
    private readonly url: string,
  ) {}

  async open(): Promise<void> {}
  async close(): Promise<void> {}

  async createWorker(): Promise<Connector> {
    return new RestConnector(this.name, this.url);
  }

  async request(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }> {
    const { status, text, serverTiming } = await sendHttp(`${this.url}${path}`, {
      method,
      ...(body !== undefined && {
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    });
    const duration = /\bdur=([0-9.]+)/.exec(serverTiming)?.[1];
    if (duration !== undefined) {
      this.serverElapsed.count++;
      this.serverElapsed.sumMilliseconds += Number(duration);
    }
    let answer: unknown;
    try {
      answer = text === "" ? undefined : JSON.parse(text);
    } catch {
      throw new Error(`${this.name}: the answer to ${method} ${path} is not JSON: ${text.slice(0, 200)}`);
    }
    return { status, body: answer };
  }

  async call(name: string): Promise<unknown> {
    if (name !== "describe") throw new Error(`${this.name}: there are no functions, ${name} neither`);
    return (await this.request("GET", "/describe")).body;
  }
}

export type RestStore = "sqlite" | "postgres" | "memory";

const backings: Record<RestStore, Back> = {
  memory: noBacking,
  sqlite: sqliteBacking,
  postgres: ownPostgres(),
};

const create: ConnectorDefinition["create"] = (_config, { url }) => new RestConnector("rest", url);
const serverFile = "src/rpc-servers/content-rest-server.ts";

export function nodeRestDefinition(store: RestStore): ConnectorDefinition {
  const key = `node_rest_${store}`;
  return {
    key,
    startCommand: `CONTENT_STORE=${store} pnpm tsx ${serverFile}`,
    create,
    async prepare(context) {
      const started = await startServerOn(context, backings[store], {
        ...{ key, command: nodeCommand(serverFile) },
        environment: { CONTENT_STORE: store, CONTENT_PORT: "0" },
      });
      context.say(`content REST server (${store}) at ${started.url}`);
      const columns = { systemClass: "full-stack", transport: httpTransport() } as const;
      return preparedFrom(context, started, new RestConnector(key, started.url), columns);
    },
  };
}

/** A server that is not the suite's. */
export const restUrlDefinition: ConnectorDefinition = {
  key: "rest_url",
  startCommand: "any server with the routes of section 16.2, and --base-url <its address>",
  create,
  async prepare({ config, say }) {
    const url = (config.baseUrl ?? defaultBaseUrl).replace(/\/+$/, "");
    try {
      await (await fetch(`${url}/content/none`)).arrayBuffer();
    } catch (error) {
      throw new NotRunning(
        `nothing answers at ${url} (${messageOf(error)}): start it, and name it with --base-url`,
      );
    }
    say(`using the server at ${url}`);
    return {
      ...foundAt(url),
      fairness: fairnessOf({
        ...{ isolation: "unknown", durability: "unknown" },
        ...{ transport: httpTransport(), colocated: isLocal(url) },
      }),
      software: { server: url },
    };
  },
};
