// Bun + Drizzle + PostgreSQL behind HTTP: the service of postgres_rpc under another runtime (section 10.4).

import { join } from "node:path";
import { packageDirectory } from "../../init/commands";
import { postgresBacking } from "../../init/postgres_backing";
import { type RpcDefinitionOptions, rpcDefinition } from "../../init/rpc_server";
import { readCommitted } from "./read_committed";

const startCommand = "BUN_PG_URL=<address of a PostgreSQL> bun run bun/bun-server.ts";

const options: Omit<RpcDefinitionOptions, "key"> = {
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
};

export const definition = rpcDefinition({ key: "bun", ...options });

/** A further row: READ COMMITTED, which is enough for transfers that lock their rows in one order. */
export const readCommittedDefinition = rpcDefinition(readCommitted("bun_read_committed", options));
