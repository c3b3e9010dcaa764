// The endpoints of http-floor: one connection per user, and what answers it.

import { join } from "node:path";
import { Pool } from "undici";
import type { Fairness } from "../core/result";
import { packageDirectory } from "../init/commands";
import { startServer } from "../init/stdb_server";
import type { Connector } from "./connector";
import type { ConnectorDefinition, PrepareContext, Prepared } from "./definition";

/** One connection that stays open, as each virtual user has. */
class GetConnector implements Connector {
  #pool: Pool | undefined;

  constructor(
    readonly name: string,
    /** The address of the endpoint. */
    private readonly url: string,
  ) {}

  async open(): Promise<void> {
    this.#pool = new Pool(new URL(this.url).origin, { connections: 1 });
  }

  async close(): Promise<void> {
    await this.#pool?.close();
  }

  async createWorker(): Promise<Connector> {
    const worker = new GetConnector(this.name, this.url);
    await worker.open();
    return worker;
  }

  async call(): Promise<unknown> {
    const { statusCode, body } = await this.#pool!.request({
      method: "GET",
      path: new URL(this.url).pathname,
    });
    await body.dump();
    if (statusCode !== 200) throw new Error(`${this.name}: answered ${statusCode}`);
    return undefined;
  }
}

const fairness: Fairness = {
  systemClass: "full-stack",
  isolation: "none",
  durability: "none: nothing is written",
  poolMax: null,
  transport: "HTTP",
  orm: "none",
  clientLanguage: "TypeScript",
  colocated: true,
  roundTripsPerTx: 1,
};

type Start = (
  context: PrepareContext,
) => Promise<Pick<Prepared, "url" | "serverProcesses" | "software" | "stop">>;

const floorDefinition = (key: string, start: Start): ConnectorDefinition => ({
  key,
  startCommand: "(the suite starts it)",
  prepare: async (context) => ({ ...(await start(context)), fairness }),
  create: (_config, { url }) => new GetConnector(key, url),
});

/** A program that prints where it listens. */
const program =
  (name: string, command: string, args: string[], software: string): Start =>
  async ({ processes, workDirectory }) => {
    const started = await processes.start({
      name,
      command,
      args,
      environment: { PORT: "0" },
      workingDirectory: packageDirectory,
      logFile: join(workDirectory, `${name.replaceAll(" ", "-")}.log`),
      readyWhen: /listening on (http:\/\/[0-9.:]+)/,
    });
    return {
      url: `${started.ready}/health`,
      serverProcesses: [started.pid],
      software: { server: software },
      stop: () => started.stop(),
    };
  };

export const nodeHttp = floorDefinition(
  "node_http",
  program(
    "node health server",
    process.execPath,
    ["--import", "tsx", join(packageDirectory, "src/rpc-servers/health-server.ts")],
    `Node.js ${process.version}`,
  ),
);

export const bunHttp = floorDefinition(
  "bun_http",
  program(
    "bun health server",
    join(packageDirectory, "node_modules", ".bin", "bun"),
    ["run", join(packageDirectory, "bun/health-server.ts")],
    "Bun",
  ),
);

export const lightconeHttp = floorDefinition("lightcone", async (context) => {
  const server = await startServer(context);
  return {
    url: `http://${server.address}/v1/ping`,
    serverProcesses: server.serverProcesses(),
    software: server.software,
    stop: () => server.stop(),
  };
});
