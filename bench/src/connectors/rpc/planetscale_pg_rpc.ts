// Node + Drizzle + PlanetScale's Postgres behind HTTP (section 10.6): a cloud service, PLANETSCALE_PG_URL names it.

import { postgresBacking } from "../../init/postgres_backing";
import { rpcDefinition } from "../../init/rpc_server";

const startCommand =
  "start it with a Postgres database at planetscale.com and set PLANETSCALE_PG_URL=<its address>, on a machine of its region";

export const definition = rpcDefinition({
  key: "planetscale_pg_rpc",
  serverFile: "src/rpc-servers/postgres-rpc-server.ts",
  urlVariable: "PLANETSCALE_RPC_URL",
  defaultUrl: "http://127.0.0.1:4104",
  portVariable: "PG_RPC_PORT",
  startCommand,
  back: postgresBacking({
    urlVariables: ["PLANETSCALE_PG_URL"],
    mayStart: false,
    startCommand,
    serverVariable: "PG_URL",
    // Its default, READ COMMITTED, is what is measured.
    asksForIsolation: false,
  }),
  connector: { health: "skipped", checksStatusFirst: true, skippedVerifyFails: false },
});
