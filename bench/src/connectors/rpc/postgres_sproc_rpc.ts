// Node + PostgreSQL behind HTTP, each transfer one stored procedure: one round trip (section 13, claim 6).

import { rpcDefinition } from "../../init/rpc_server";
import { nodeOnPostgres } from "./postgres_rpc";
import { readCommitted } from "./read_committed";

const options = nodeOnPostgres("src/rpc-servers/postgres-sproc-rpc-server.ts", "PG_SPROC_RPC", 4108);

export const definition = rpcDefinition({ key: "postgres_sproc_rpc", ...options });

/** A further row: READ COMMITTED, which is enough for transfers that lock their rows in one order. */
export const readCommittedDefinition = rpcDefinition(
  readCommitted("postgres_sproc_rpc_read_committed", options),
);
