// Node + Drizzle + PostgreSQL behind HTTP: five round trips to the database for each transfer (section 10.3).

import { ownPostgres } from "../../init/postgres_backing";
import { type RpcDefinitionOptions, rpcDefinition } from "../../init/rpc_server";
import { readCommitted } from "./read_committed";

/** A server in Node on PostgreSQL: its file, the beginning of its variables, its usual port. */
export function nodeOnPostgres(
  file: string,
  variable: string,
  port: number,
): Omit<RpcDefinitionOptions, "key"> {
  const startCommand = `PG_URL=<address of a PostgreSQL> pnpm tsx ${file}`;
  return {
    serverFile: file,
    urlVariable: `${variable}_URL`,
    defaultUrl: `http://127.0.0.1:${port}`,
    portVariable: `${variable}_PORT`,
    startCommand,
    back: ownPostgres(startCommand),
  };
}

const options = nodeOnPostgres("src/rpc-servers/postgres-rpc-server.ts", "PG_RPC", 4101);

export const definition = rpcDefinition({ key: "postgres_rpc", ...options });

/** A further row: READ COMMITTED, which is enough for transfers that lock their rows in one order. */
export const readCommittedDefinition = rpcDefinition(readCommitted("postgres_rpc_read_committed", options));
