// REST servers of content-crud: of this suite, or any other that --base-url names (section 16.3).

import type { Fairness } from "../core/result";
import { isLocal, messageOf, processesAt } from "../init/addresses";
import { type Back, noBacking, nodeCommand, sqliteBacking, startServerOn } from "../init/backing";
import { ownPostgres } from "../init/postgres_backing";
import { type Connector, NotRunning } from "./connector";
import { type ConnectorDefinition, fairnessOf } from "./definition";
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

  call(name: string): Promise<unknown> {
    return Promise.reject(new Error(`${this.name}: there are no functions, ${name} neither`));
  }
}

export type RestStore = "sqlite" | "postgres" | "memory";

const backings: Record<RestStore, Back> = {
  memory: noBacking,
  sqlite: sqliteBacking,
  postgres: ownPostgres(),
};

interface Description {
  isolation: string;
  durability: string;
  isDurable?: boolean;
  poolMax: number | null;
  software?: Record<string, string>;
}

const unknown: Description = { isolation: "unknown", durability: "unknown", poolMax: null };

const columnsOf = (
  { isolation, durability, poolMax, isDurable }: Description,
  colocated: boolean,
): Fairness =>
  fairnessOf({
    ...{ isolation, durability, poolMax, transport: httpTransport(), colocated },
    ...(isDurable === false && { systemClass: "not-durable" }),
  });

const create: ConnectorDefinition["create"] = (_config, { url }) => new RestConnector("rest", url);
const serverFile = "src/rpc-servers/content-rest-server.ts";

const descriptionAt = async (url: string) => (await (await fetch(`${url}/describe`)).json()) as Description;

export function nodeRestDefinition(store: RestStore): ConnectorDefinition {
  const key = `node_rest_${store}`;
  return {
    key,
    startCommand: `CONTENT_STORE=${store} pnpm tsx ${serverFile}`,
    create,
    async prepare(context) {
      const { processes, ...started } = await startServerOn(context, backings[store], {
        ...{ key, command: nodeCommand(serverFile) },
        environment: { CONTENT_STORE: store, CONTENT_PORT: "0" },
      });
      context.say(`content REST server (${store}) at ${started.url}`);
      const description = await descriptionAt(started.url).catch(async (error: unknown) => {
        await started.stop();
        throw error;
      });
      return {
        ...started,
        fairness: columnsOf(description, processes() !== null),
        get serverProcesses() {
          return processes();
        },
        software: { server: `Node.js ${process.version}`, ...description.software },
      };
    },
  };
}

/** A server that somebody else runs. */
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
      url,
      fairness: columnsOf(unknown, isLocal(url)),
      serverProcesses: processesAt(url),
      software: { server: url },
      stop: async () => {},
    };
  },
};
