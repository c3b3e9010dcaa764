// Node's HTTP server with one route, GET /health: what HTTP alone costs (section 19, http-floor).

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { runAsProgram } from "./node_rpc_server";
import { portOfEnvironment } from "./postgres/methods";

runAsProgram(async () => {
  const server = createServer((request, response) => {
    const isHealth = request.method === "GET" && request.url === "/health";
    response
      .writeHead(isHealth ? 200 : 404, { "content-type": "text/plain" })
      .end(isHealth ? "ok" : "not found");
  });
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(portOfEnvironment(["PORT"], 0), "127.0.0.1", resolve);
  });
  console.log(`node health server listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return {
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
});
