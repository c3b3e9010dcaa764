// Node's HTTP server with one route, GET /health: what HTTP alone costs (section 19, http-floor).

import { listen, portOfEnvironment, runAsProgram } from "./node_rpc_server";

runAsProgram(() =>
  listen("node health server", portOfEnvironment(["PORT"], 0), (request, response) => {
    const isHealth = request.method === "GET" && request.url === "/health";
    response
      .writeHead(isHealth ? 200 : 404, { "content-type": "text/plain" })
      .end(isHealth ? "ok" : "not found");
  }),
);
