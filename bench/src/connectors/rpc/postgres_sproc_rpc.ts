// Node + PostgreSQL behind HTTP, each transfer one stored procedure: one round trip (section 13, claim 6).

import { postgresBacking } from "../../init/postgres_backing";
import { rpcDefinition } from "../../init/rpc_server";

const startCommand = "PG_URL=<address of a PostgreSQL> pnpm tsx src/rpc-servers/postgres-sproc-rpc-server.ts";

export const definition = rpcDefinition({
  key: "postgres_sproc_rpc",
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
});
