// Node + Drizzle + PostgreSQL behind HTTP: five round trips to the database for each transfer (section 10.3).

import { postgresBacking } from "../../init/postgres_backing";
import { type RpcDefinitionOptions, rpcDefinition } from "../../init/rpc_server";
import { readCommitted } from "./read_committed";

const startCommand = "PG_URL=<address of a PostgreSQL> pnpm tsx src/rpc-servers/postgres-rpc-server.ts";

const options: Omit<RpcDefinitionOptions, "key"> = {
  serverFile: "src/rpc-servers/postgres-rpc-server.ts",
  urlVariable: "PG_RPC_URL",
  defaultUrl: "http://127.0.0.1:4101",
  portVariable: "PG_RPC_PORT",
  startCommand,
  back: postgresBacking({
    urlVariables: ["PG_URL"],
    mayStart: true,
    startCommand,
    serverVariable: "PG_URL",
    asksForIsolation: true,
  }),
};

export const definition = rpcDefinition({ key: "postgres_rpc", ...options });

/** A further row: READ COMMITTED, which is enough for transfers that lock their rows in one order. */
export const readCommittedDefinition = rpcDefinition(readCommitted("postgres_rpc_read_committed", options));
