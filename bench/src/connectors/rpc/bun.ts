// Bun + Drizzle + PostgreSQL behind HTTP: the service of postgres_rpc under another runtime (section 10.4).

import { join } from "node:path";
import { packageDirectory } from "../../init/commands";
import { postgresBacking } from "../../init/postgres_backing";
import { rpcDefinition } from "../../init/rpc_server";

const startCommand = "BUN_PG_URL=<address of a PostgreSQL> bun run bun/bun-server.ts";

export const definition = rpcDefinition({
  key: "bun",
  serverFile: "bun/bun-server.ts",
  urlVariable: "BUN_URL",
  defaultUrl: "http://127.0.0.1:4001",
  urlOfFlag: (config) => config.bunUrl,
  portVariable: "PORT",
  startCommand,
  // The program of the npm package `bun`.
  runtime: () => ({ command: join(packageDirectory, "node_modules", ".bin", "bun"), args: ["run"] }),
  back: postgresBacking({
    urlVariables: ["BUN_PG_URL", "PG_URL"],
    mayStart: true,
    startCommand,
    serverVariable: "BUN_PG_URL",
    asksForIsolation: true,
    databaseName: "bun_bench",
  }),
  connector: {
    health: "ignored",
    alwaysSendsArguments: true,
    checksStatusFirst: true,
    skippedVerifyFails: false,
  },
});
