// Serves a service of the Postgres class with Node, and closes its pool at the end.

import { serveRpc } from "../node_rpc_server";
import type { PostgresService } from "./methods";

export async function servePostgres({ service, pool }: PostgresService, port: number) {
  try {
    const server = await serveRpc(service, port);
    return {
      async close() {
        await server.close();
        await pool.end();
      },
    };
  } catch (error) {
    await pool.end();
    throw error;
  }
}
