// The server of supabase_rpc (section 10.5): straight to the database of the stack, not through its pooler.

import "dotenv/config";
import { runAsProgram } from "./node_rpc_server";
import { portOfEnvironment, postgresService } from "./postgres/methods";
import { servePostgres } from "./postgres/serve";

runAsProgram(async () => {
  const options = {
    banner: "supabase drizzle rpc server",
    applicationName: "supabase-rpc-drizzle",
    hiddenErrorText: "internal error",
    urlVariables: ["SUPABASE_DB_URL", "PG_URL"],
    idType: "bigint" as const,
    roundTripsPerTx: 5,
    orm: "Drizzle",
  };
  return servePostgres(
    postgresService(options),
    portOfEnvironment(["SUPABASE_RPC_PORT", "PG_RPC_PORT"], 4106),
  );
});
