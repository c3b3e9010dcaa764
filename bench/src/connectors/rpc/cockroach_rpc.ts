// Node + Drizzle + CockroachDB behind HTTP (section 10.7). No registry has CockroachDB: CRDB_URL names a running one.

import { postgresBacking } from "../../init/postgres_backing";
import { rpcDefinition } from "../../init/rpc_server";

const startCommand =
  "start it with `cockroach start-single-node --insecure --listen-addr=127.0.0.1:26257 --http-addr=127.0.0.1:8081` " +
  "and set CRDB_URL=postgresql://root@127.0.0.1:26257/defaultdb?sslmode=disable";

export const definition = rpcDefinition({
  key: "cockroach_rpc",
  serverFile: "src/rpc-servers/cockroach-rpc-server.ts",
  urlVariable: "CRDB_RPC_URL",
  defaultUrl: "http://127.0.0.1:4102",
  portVariable: "CRDB_RPC_PORT",
  startCommand,
  back: postgresBacking({
    urlVariables: ["CRDB_URL"],
    mayStart: false,
    startCommand,
    serverVariable: "CRDB_URL",
    // Serializable is its default.
    asksForIsolation: false,
  }),
});
