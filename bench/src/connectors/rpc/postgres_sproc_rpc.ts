// Node + PostgreSQL behind HTTP, each transfer one stored procedure: one round trip (section 13, claim 6).

import { postgresBacking } from "../../init/postgres_backing";
import { type RpcDefinitionOptions, rpcDefinition } from "../../init/rpc_server";
import { readCommitted } from "./read_committed";

const startCommand = "PG_URL=<address of a PostgreSQL> pnpm tsx src/rpc-servers/postgres-sproc-rpc-server.ts";

const options: Omit<RpcDefinitionOptions, "key"> = {
  serverFile: "src/rpc-servers/postgres-sproc-rpc-server.ts",
  urlVariable: "PG_SPROC_RPC_URL",
  defaultUrl: "http://127.0.0.1:4108",
  portVariable: "PG_SPROC_RPC_PORT",
  startCommand,
  back: postgresBacking({
    urlVariables: ["PG_URL"],
    mayStart: true,
    startCommand,
    serverVariable: "PG_URL",
    asksForIsolation: true,
  }),
};

export const definition = rpcDefinition({ key: "postgres_sproc_rpc", ...options });

/** A further row: READ COMMITTED, which is enough for transfers that lock their rows in one order. */
export const readCommittedDefinition = rpcDefinition(
  readCommitted("postgres_sproc_rpc_read_committed", options),
);
