// Serves an RPC service with Node's HTTP server, until SIGINT or SIGTERM.

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { answerOther, answerRpc, type RpcReply, type RpcService } from "./rpc";

/** The largest request body that is read. */
const bodyBytesMax = 64 << 20;

export interface RunningRpcServer {
  server: Server;
  url: string;
  close(): Promise<void>;
}

/** Listens on 127.0.0.1; port 0 takes a free one. Prints `listening on <url>`, which the suite waits for. */
export async function serveRpc(service: RpcService, port: number): Promise<RunningRpcServer> {
  const server = createServer((request, response) => {
    void answer(service, request).then((reply) => {
      response.writeHead(reply.status, {
        "content-type": reply.contentType,
        "content-length": Buffer.byteLength(reply.body),
      });
      response.end(reply.body);
    });
  });
  // Clients keep their connections for the whole run.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  console.log(`${service.banner} listening on ${url}`);
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { server, url, close };
}

async function answer(service: RpcService, request: IncomingMessage): Promise<RpcReply> {
  const path = (request.url ?? "/").split("?")[0] ?? "/";
  if (request.method !== "POST" || path !== "/rpc") {
    request.resume();
    return answerOther(service, request.method ?? "GET", path);
  }
  try {
    return await answerRpc(service, await bodyOf(request));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return {
      status: 400,
      contentType: "application/json",
      body: JSON.stringify({ ok: false, error: message }),
    };
  }
}

function bodyOf(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= bodyBytesMax) chunks.push(chunk);
    });
    request.on("end", () => {
      if (bytes > bodyBytesMax) reject(new Error(`a body of more than ${bodyBytesMax} bytes`));
      else resolve(Buffer.concat(chunks).toString("utf8"));
    });
    request.on("error", reject);
  });
}

/** Runs a server as a program: errors at the start end it with a message, signals close what it holds. */
export function runAsProgram(start: () => Promise<{ close(): Promise<void> }>): void {
  start().then(
    (running) => {
      let isStopping = false;
      for (const signal of ["SIGINT", "SIGTERM"] as const) {
        process.on(signal, () => {
          if (isStopping) return;
          isStopping = true;
          running.close().then(
            () => process.exit(0),
            (error: unknown) => {
              console.error(error);
              process.exit(1);
            },
          );
        });
      }
    },
    (error: unknown) => {
      console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
      process.exit(1);
    },
  );
}
