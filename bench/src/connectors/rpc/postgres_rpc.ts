// Node + Drizzle + PostgreSQL behind HTTP: five round trips to the database for each transfer (section 10.3).

import {
  nodeServerArguments,
  type PostgresClassOptions,
  preparePostgresClass,
} from "../../init/postgres_class";
import type { ConnectorDefinition } from "../connector";
import { RpcConnector } from "./rpc_connector";

const options: PostgresClassOptions = {
  key: "postgres_rpc",
  databaseUrlVariables: ["PG_URL"],
  mayStartDatabase: true,
  asksForIsolation: true,
  rpcUrl: () => process.env["PG_RPC_URL"] || "http://127.0.0.1:4101",
  server: {
    name: "postgres RPC server",
    args: nodeServerArguments("postgres-rpc-server.ts"),
    portVariable: "PG_RPC_PORT",
    databaseVariable: "PG_URL",
  },
  idType: "integer",
  roundTripsPerTx: 5,
  orm: "drizzle",
  runtime: `Node ${process.version}`,
};

export const definition: ConnectorDefinition = {
  key: options.key,
  startCommand: "PG_URL=<address of a PostgreSQL> pnpm tsx src/rpc-servers/postgres-rpc-server.ts",
  prepare: (context) => preparePostgresClass(context, options),
  create: ({ initialBalance }, { url }) => new RpcConnector({ name: options.key, url, initialBalance }),
};
