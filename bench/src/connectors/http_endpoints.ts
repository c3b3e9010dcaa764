// The endpoints of http-floor: one connection per user, and what answers it.

import { Pool } from "undici";
import { bunCommand, noBacking, nodeCommand, startServerOn } from "../init/backing";
import { startServer } from "../init/stdb_server";
import type { Connector } from "./connector";
import { type ConnectorDefinition, fairnessOf, type PrepareContext, type Prepared } from "./definition";

/** One connection that stays open, as each virtual user has. */
function connection(name: string, url: string): Connector {
  const { origin, pathname: path } = new URL(url);
  const pool = new Pool(origin, { connections: 1 });
  return {
    name,
    open: async () => {},
    close: () => pool.close(),
    createWorker: async () => connection(name, url),
    async call() {
      const { statusCode, body } = await pool.request({ method: "GET", path });
      await body.dump();
      if (statusCode !== 200) throw new Error(`${name}: answered ${statusCode}`);
      return undefined;
    },
  };
}

const fairness = fairnessOf({
  ...{ isolation: "none", durability: "none: nothing is written", transport: "HTTP", colocated: true },
});

const floorDefinition = (
  key: string,
  start: (context: PrepareContext) => Promise<Omit<Prepared, "fairness">>,
): [string, ConnectorDefinition] => [
  key,
  {
    key,
    startCommand: "(the suite starts it)",
    prepare: async (context) => ({ ...(await start(context)), fairness }),
    create: (_config, { url }) => connection(key, url),
  },
];

/** A program that prints where it listens. */
const program = (key: string, command: string[], server: string) =>
  floorDefinition(key, async (context) => {
    const options = { key, command, environment: { PORT: "0" } };
    const started = await startServerOn(context, noBacking, options);
    return { ...started, url: `${started.url}/health`, software: { server } };
  });

export const httpFloorConnectors = Object.fromEntries([
  program("node_http", nodeCommand("src/rpc-servers/health-server.ts"), `Node.js ${process.version}`),
  program("bun_http", bunCommand("bun/health-server.ts"), "Bun"),
  floorDefinition("lightcone", async (context) => {
    const server = await startServer(context);
    return { ...server, url: `http://${server.url}/v1/ping` };
  }),
]);
