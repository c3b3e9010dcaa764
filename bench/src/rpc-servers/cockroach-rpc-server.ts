// The server of cockroach_rpc (section 10.7).

import "dotenv/config";
import { runAsProgram } from "./node_rpc_server";
import { portOfEnvironment, postgresService } from "./postgres/methods";
import { servePostgres } from "./postgres/serve";

runAsProgram(async () => {
  const options = {
    banner: "cockroach drizzle rpc server",
    applicationName: "crdb-rpc-drizzle",
    hiddenErrorText: "internal server error",
    urlVariables: ["CRDB_URL"],
    idType: "integer" as const,
    roundTripsPerTx: 5,
    orm: "Drizzle",
  };
  return servePostgres(postgresService(options), portOfEnvironment(["CRDB_RPC_PORT"], 4102));
});
