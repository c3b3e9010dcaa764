// The server of bun (section 10.4): the same service as postgres_rpc, served by Bun. Start it with `bun run`.

import "dotenv/config";
import {
  poolMaxOfEnvironment,
  portOfEnvironment,
  postgresService,
} from "../src/rpc-servers/postgres/methods";
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

const defaultPort = 4001;
/** The longest that Bun allows a connection to be silent. */
const idleSecondsMax = 255;

function main(): void {
  const poolMax = poolMaxOfEnvironment();
  const { service, pool } = postgresService({
    banner: "bun drizzle rpc server",
    applicationName: "bun-rpc-drizzle",
    hiddenErrorText: "internal error",
    urlVariables: ["BUN_PG_URL", "PG_URL"],
    idType: "integer",
    roundTripsPerTx: 5,
    orm: "Drizzle",
    runtime: `Bun ${Bun.version}`,
  });
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: portOfEnvironment(["PORT"], defaultPort),
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
  console.log(
    `${service.banner} (Bun ${Bun.version}, pool ${poolMax}) listening on http://127.0.0.1:${server.port}`,
  );
  const stop = async () => {
    await server.stop(true);
    await pool.end();
    process.exit(0);
  };
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
}

try {
  main();
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
