// REST servers of content-crud: of this suite, or any other that --base-url names (section 16.3).

import { join } from "node:path";
import { processesListeningOn } from "../core/cpu";
import type { Fairness, SystemClass } from "../core/result";
import { packageDirectory } from "../init/commands";
import { ownPostgres } from "../init/postgres_backing";
import { isLocal, messageOf } from "../init/postgres_database";
import type { Backing } from "../init/rpc_server";
import { sqliteBacking } from "../init/sqlite_backing";
import type { Connector } from "./connector";
import { NotRunning } from "./connector";
import type { ConnectorDefinition, PrepareContext, Prepared } from "./definition";
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

type Store = "sqlite" | "postgres" | "memory";

const noBacking = async (): Promise<Backing> => ({ environment: {}, processes: [], stop: async () => {} });

const backings: Record<Store, (context: PrepareContext) => Promise<Backing>> = {
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

function fairnessOf(
  description: Description | undefined,
  systemClass: SystemClass,
  colocated: boolean,
): Fairness {
  return {
    systemClass: description?.isDurable === false ? "not-durable" : systemClass,
    isolation: description?.isolation ?? "unknown",
    durability: description?.durability ?? "unknown",
    poolMax: description?.poolMax ?? null,
    transport: httpTransport(),
    orm: "none",
    clientLanguage: "TypeScript",
    colocated,
    roundTripsPerTx: 1,
  };
}

async function prepareStore(context: PrepareContext, key: string, store: Store): Promise<Prepared> {
  const backing = await backings[store](context);
  try {
    const program = await context.processes.start({
      name: `content REST server (${store})`,
      command: process.execPath,
      args: ["--import", "tsx", join(packageDirectory, "src/rpc-servers/content-rest-server.ts")],
      workingDirectory: packageDirectory,
      environment: { CONTENT_STORE: store, CONTENT_PORT: "0", ...backing.environment },
      logFile: join(context.workDirectory, `${key}.log`),
      readyWhen: /listening on (http:\S+)/,
    });
    context.say(`content REST server (${store}) at ${program.ready}`);
    const description = (await (await fetch(`${program.ready}/describe`)).json()) as Description;
    return {
      url: program.ready,
      fairness: fairnessOf(description, "full-stack", backing.processes !== null),
      get serverProcesses() {
        return backing.processes === null ? null : [program.pid, ...backing.processes];
      },
      ...(backing.dataDirectory !== undefined && { dataDirectory: backing.dataDirectory }),
      software: { server: `Node.js ${process.version}`, ...description.software },
      async stop() {
        await program.stop();
        await backing.stop();
      },
    };
  } catch (error) {
    await backing.stop();
    throw error;
  }
}

const create: ConnectorDefinition["create"] = (_config, { url }) => new RestConnector("rest", url);

export function nodeRestDefinition(store: Store): ConnectorDefinition {
  const key = `node_rest_${store}`;
  return {
    key,
    startCommand: `CONTENT_STORE=${store} pnpm tsx src/rpc-servers/content-rest-server.ts`,
    prepare: (context) => prepareStore(context, key, store),
    create,
  };
}

/** A server that somebody else runs. */
export const restUrlDefinition: ConnectorDefinition = {
  key: "rest_url",
  startCommand: "any server with the routes of section 16.2, and --base-url <its address>",
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
      fairness: fairnessOf(undefined, "full-stack", isLocal(url)),
      serverProcesses: isLocal(url) ? processesListeningOn(Number(new URL(url).port || "80")) : null,
      software: { server: url },
      stop: async () => {},
    };
  },
  create,
};
