// Bun + Drizzle + PostgreSQL behind HTTP: the service of postgres_rpc under another runtime (section 10.4).

import { createRequire } from "node:module";
import { join } from "node:path";
import { type PostgresClassOptions, preparePostgresClass, suiteDirectory } from "../../init/postgres_class";
import type { ConnectorDefinition } from "../connector";
import { RpcConnector } from "./rpc_connector";

const key = "bun";

/** The program of the npm package `bun`, and its version. */
function bunProgram(): { path: string; version: string } {
  const manifest = createRequire(import.meta.url)("bun/package.json") as { version: string };
  return { path: join(suiteDirectory, "node_modules", ".bin", "bun"), version: manifest.version };
}

function options(): PostgresClassOptions {
  const { path, version } = bunProgram();
  return {
    key,
    databaseUrlVariables: ["BUN_PG_URL", "PG_URL"],
    mayStartDatabase: true,
    databaseName: "bun_bench",
    asksForIsolation: true,
    rpcUrl: (config) => config.bunUrl,
    server: {
      name: "bun RPC server",
      command: path,
      args: ["run", join(suiteDirectory, "bun", "bun-server.ts")],
      portVariable: "PORT",
      databaseVariable: "BUN_PG_URL",
    },
    idType: "integer",
    roundTripsPerTx: 5,
    orm: "drizzle",
    runtime: `Bun ${version}`,
  };
}

export const definition: ConnectorDefinition = {
  key,
  startCommand: "BUN_PG_URL=<address of a PostgreSQL> bun run bun/bun-server.ts",
  prepare: async (context) => preparePostgresClass(context, options()),
  create: ({ initialBalance }, { url }) =>
    new RpcConnector({
      name: key,
      url,
      initialBalance,
      health: "ignored",
      alwaysSendsArguments: true,
      checksStatusFirst: true,
      skippedVerifyFails: false,
    }),
};
