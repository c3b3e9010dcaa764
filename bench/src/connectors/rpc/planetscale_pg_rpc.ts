// Node + Drizzle + PlanetScale's Postgres behind HTTP (section 10.6): a cloud service, PLANETSCALE_PG_URL names it.

import {
  nodeServerArguments,
  type PostgresClassOptions,
  preparePostgresClass,
} from "../../init/postgres_class";
import type { ConnectorDefinition } from "../connector";
import { RpcConnector } from "./rpc_connector";

const options: PostgresClassOptions = {
  key: "planetscale_pg_rpc",
  databaseUrlVariables: ["PLANETSCALE_PG_URL"],
  mayStartDatabase: false,
  // Its default, READ COMMITTED, is what is measured.
  asksForIsolation: false,
  rpcUrl: () => process.env["PLANETSCALE_RPC_URL"] || "http://127.0.0.1:4104",
  server: {
    name: "planetscale RPC server",
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
  startCommand:
    "a Postgres database at planetscale.com and PLANETSCALE_PG_URL=<its address>; best from a machine in its region",
  prepare: (context) => preparePostgresClass(context, options),
  create: ({ initialBalance }, { url }) =>
    new RpcConnector({
      name: options.key,
      url,
      initialBalance,
      health: "skipped",
      checksStatusFirst: true,
      skippedVerifyFails: false,
    }),
};
