// The server of postgres_sproc_rpc (section 13): the whole transfer is one statement.

import "dotenv/config";
import { runAsProgram } from "./node_rpc_server";
import { portOfEnvironment, postgresService } from "./postgres/methods";
import { servePostgres } from "./postgres/serve";
import { createTransferFunction, transferByProcedure } from "./postgres/stored_procedure";

runAsProgram(async () => {
  const options = {
    banner: "pg stored procedure rpc server",
    applicationName: "pg-rpc-sproc",
    hiddenErrorText: "internal server error",
    urlVariables: ["PG_URL"],
    idType: "integer" as const,
    roundTripsPerTx: 1,
    orm: "none",
  };
  const running = postgresService(
    options,
    (pool, counter) => (transfer) => transferByProcedure(pool, transfer, counter),
  );
  await createTransferFunction(running.pool);
  return servePostgres(running, portOfEnvironment(["PG_SPROC_RPC_PORT"], 4108));
});
