// The ceiling of the HTTP path: nothing behind it is kept (section 13).

import { rpcDefinition } from "../../init/rpc_server";

export const definition = rpcDefinition({
  key: "node_memory_rpc",
  serverFile: "src/rpc-servers/node-memory-rpc-server.ts",
  urlVariable: "NODE_MEMORY_RPC_URL",
  defaultUrl: "http://127.0.0.1:4105",
  portVariable: "NODE_MEMORY_RPC_PORT",
  startCommand: "pnpm tsx src/rpc-servers/node-memory-rpc-server.ts",
  systemClass: "not-durable",
  back: async () => ({ environment: {}, processes: [], stop: async () => {} }),
});
