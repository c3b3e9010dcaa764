// The server of postgres_rpc, and of planetscale_pg_rpc with another address (sections 10.3 and 10.6).

import "dotenv/config";
import { runAsProgram } from "./node_rpc_server";
import { portOfEnvironment, postgresService } from "./postgres/methods";
import { servePostgres } from "./postgres/serve";

runAsProgram(async () => {
  const options = {
    banner: "pg drizzle rpc server",
    applicationName: "pg-rpc-drizzle",
    hiddenErrorText: "internal server error",
    urlVariables: ["PG_URL"],
    idType: "integer" as const,
    roundTripsPerTx: 5,
    orm: "Drizzle",
  };
  return servePostgres(postgresService(options), portOfEnvironment(["PG_RPC_PORT"], 4101));
});
