// Node + Drizzle + CockroachDB behind HTTP (section 10.7). No registry has CockroachDB: CRDB_URL names a running one.

import {
  nodeServerArguments,
  type PostgresClassOptions,
  preparePostgresClass,
} from "../../init/postgres_class";
import type { ConnectorDefinition } from "../connector";
import { RpcConnector } from "./rpc_connector";

const options: PostgresClassOptions = {
  key: "cockroach_rpc",
  databaseUrlVariables: ["CRDB_URL"],
  mayStartDatabase: false,
  // Serializable is its default.
  asksForIsolation: false,
  rpcUrl: () => process.env["CRDB_RPC_URL"] || "http://127.0.0.1:4102",
  server: {
    name: "cockroach RPC server",
    args: nodeServerArguments("cockroach-rpc-server.ts"),
    portVariable: "CRDB_RPC_PORT",
    databaseVariable: "CRDB_URL",
  },
  idType: "integer",
  roundTripsPerTx: 5,
  orm: "drizzle",
  runtime: `Node ${process.version}`,
};

export const definition: ConnectorDefinition = {
  key: options.key,
  startCommand:
    "cockroach start-single-node --insecure --listen-addr=127.0.0.1:26257 --http-addr=127.0.0.1:8081, and set " +
    "CRDB_URL=postgresql://root@127.0.0.1:26257/defaultdb?sslmode=disable",
  prepare: (context) => preparePostgresClass(context, options),
  create: ({ initialBalance }, { url }) => new RpcConnector({ name: options.key, url, initialBalance }),
};
