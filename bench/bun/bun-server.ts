// The server of bun (section 10.4): the same service as postgres_rpc, served by Bun. Start it with `bun run`.

import "dotenv/config";
import { portOfEnvironment, runAsProgram } from "../src/rpc-servers/node_rpc_server";
import { postgresServers, postgresService } from "../src/rpc-servers/postgres/service";
import { answerOther, answerRpc } from "../src/rpc-servers/rpc";

/** What is used of Bun; its own types would replace those of Node in the whole package. */
interface BunRuntime {
  version: string;
  serve(options: {
    hostname: string;
    port: number;
    idleTimeout: number;
    fetch(request: Request): Promise<Response>;
  }): { port: number; stop(closesActiveConnections: boolean): Promise<void> };
}
declare const Bun: BunRuntime;

/** The longest that Bun allows a connection to be silent. */
const idleSecondsMax = 255;

runAsProgram(async () => {
  const { service, pool } = await postgresService("bun", `Bun ${Bun.version}`);
  const { portVariables, defaultPort } = postgresServers.bun;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: portOfEnvironment(portVariables, defaultPort),
    idleTimeout: idleSecondsMax,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const reply =
        request.method === "POST" && pathname === "/rpc"
          ? await answerRpc(service, await request.text())
          : answerOther(service, request.method, pathname);
      return new Response(reply.body, {
        status: reply.status,
        headers: { "content-type": reply.contentType },
      });
    },
  });
  const pooled = `Bun ${Bun.version}, pool ${pool.options.max}`;
  console.log(`${service.banner} (${pooled}) listening on http://127.0.0.1:${server.port}`);
  return {
    async close() {
      await server.stop(true);
      await pool.end();
    },
  };
});
