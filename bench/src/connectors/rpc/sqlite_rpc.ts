// Node.js + SQLite (section 10.2).

import { rpcDefinition } from "../../init/rpc_server";
import { sqliteBacking } from "../../init/sqlite_backing";

export const definition = rpcDefinition({
  key: "sqlite_rpc",
  serverFile: "src/rpc-servers/sqlite-rpc-server.ts",
  urlVariable: "SQLITE_RPC_URL",
  defaultUrl: "http://127.0.0.1:4103",
  portVariable: "SQLITE_RPC_PORT",
  startCommand: "pnpm tsx src/rpc-servers/sqlite-rpc-server.ts",
  back: sqliteBacking,
});
