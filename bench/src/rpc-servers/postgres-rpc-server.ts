// A server of the Postgres class: `postgres-rpc-server.ts [name]`, which is postgres_rpc if left out, and also that of
// planetscale_pg_rpc with another address (section 10).

import "dotenv/config";
import { portOfEnvironment, runAsProgram, servedOn, serveRpc } from "./node_rpc_server";
import { postgresServers, postgresService } from "./postgres/service";

runAsProgram(async () => {
  const key = (process.argv[2] ?? "postgres_rpc") as keyof typeof postgresServers;
  if (!Object.hasOwn(postgresServers, key)) throw new Error(`there is no server ${key}`);
  const { service, pool } = await postgresService(key);
  const { portVariables, defaultPort } = postgresServers[key];
  const close = () => pool.end();
  return servedOn({ close }, () => serveRpc(service, portOfEnvironment(portVariables, defaultPort)));
});
