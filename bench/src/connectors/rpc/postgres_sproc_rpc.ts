// Node + PostgreSQL behind HTTP, each transfer one stored procedure: one round trip (section 13, claim 6).

import {
  nodeServerArguments,
  type PostgresClassOptions,
  preparePostgresClass,
} from "../../init/postgres_class";
import type { ConnectorDefinition } from "../connector";
import { RpcConnector } from "./rpc_connector";

const options: PostgresClassOptions = {
  key: "postgres_sproc_rpc",
  databaseUrlVariables: ["PG_URL"],
  mayStartDatabase: true,
  asksForIsolation: true,
  rpcUrl: () => process.env["PG_SPROC_RPC_URL"] || "http://127.0.0.1:4108",
  server: {
    name: "postgres stored procedure RPC server",
    args: nodeServerArguments("postgres-sproc-rpc-server.ts"),
    portVariable: "PG_SPROC_RPC_PORT",
    databaseVariable: "PG_URL",
  },
  idType: "integer",
  roundTripsPerTx: 1,
  orm: "none",
  runtime: `Node ${process.version}`,
};

export const definition: ConnectorDefinition = {
  key: options.key,
  startCommand: "PG_URL=<address of a PostgreSQL> pnpm tsx src/rpc-servers/postgres-sproc-rpc-server.ts",
  prepare: (context) => preparePostgresClass(context, options),
  create: ({ initialBalance }, { url }) => new RpcConnector({ name: options.key, url, initialBalance }),
};
