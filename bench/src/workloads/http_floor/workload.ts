// http-floor (section 19): GET of a bare endpoint, no database; what HTTP and the client cost.

import { join } from "node:path";
import { Pool } from "undici";
import type {
  Account,
  Connector,
  ConnectorDefinition,
  Fairness,
  VerifyTotals,
} from "../../connectors/connector";
import { packageDirectory } from "../../init/commands";
import type { PrepareContext, Prepared } from "../../init/prepare";
import { startServer } from "../../init/stdb_server";
import type { Workload, WorkloadCase } from "../workload";

const defaultConcurrency = 50;
const defaultSeconds = 15;
const samples = 3;

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

  getAccount(): Promise<Account | null> {
    return Promise.reject(new Error(`${this.name}: there are no accounts`));
  }

  verify(): Promise<VerifyTotals> {
    return Promise.reject(new Error(`${this.name}: there are no accounts`));
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

function floorCase(key: string, label: string, start: Start): WorkloadCase {
  const definition: ConnectorDefinition = {
    key,
    startCommand: "(the suite starts it)",
    prepare: async (context) => ({ ...(await start(context)), fairness, reseed: async () => {} }),
    create: (_config, { url }) => new GetConnector(key, url),
  };
  const get = async (connection: Connector) => {
    await connection.call("get");
    return { ok: true };
  };
  return { system: key, label, ops: { get }, definition };
}

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

export const nodeHttpCase = floorCase(
  "node_http",
  "Node.js, built-in HTTP server",
  program(
    "node health server",
    process.execPath,
    ["--import", "tsx", join(packageDirectory, "src/rpc-servers/health-server.ts")],
    `Node.js ${process.version}`,
  ),
);

export const bunHttpCase = floorCase(
  "bun_http",
  "Bun",
  program(
    "bun health server",
    join(packageDirectory, "node_modules", ".bin", "bun"),
    ["run", join(packageDirectory, "bun/health-server.ts")],
    "Bun",
  ),
);

export const lightconeHttpCase = floorCase("lightcone", "Lightcone, /v1/ping", async (context) => {
  const server = await startServer(context);
  return {
    url: `http://${server.address}/v1/ping`,
    serverProcesses: server.serverProcesses(),
    software: server.software,
    stop: () => server.stop(),
  };
});

export const httpFloorWorkload: Workload = {
  name: "http-floor",
  samples,
  runs: (config) => {
    const concurrency = config.given?.has("concurrency") ? config.concurrency : defaultConcurrency;
    const seconds = config.given?.has("seconds") ? config.seconds : defaultSeconds;
    const warmupSec = config.given?.has("warmupSec") ? config.warmupSec : 0;
    return [
      {
        label: `with ${concurrency} connections`,
        create: () => ({
          parameters: { seconds },
          limit: { mode: "time", seconds, warmupSec },
          concurrency,
          load: async () => undefined,
          generator: () => ({ next: () => ({ kind: "get", args: {} }) }),
          verify: async (_root, _run, measurement) => ({
            ok: measurement.errors + measurement.timeouts === 0,
            message: `${measurement.samples} answers, ${measurement.errors + measurement.timeouts} failures`,
          }),
        }),
      },
    ];
  },
};
