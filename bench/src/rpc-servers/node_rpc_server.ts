// Serves with Node's HTTP server, until SIGINT or SIGTERM.

import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { answerOther, answerRpc, jsonReply, type RpcReply, type RpcService } from "./rpc";

/** The largest request body that is read. */
const bodyBytesMax = 64 << 20;

export interface RunningServer {
  server: Server;
  url: string;
  close(): Promise<void>;
}

/** Listens on 127.0.0.1; port 0 takes a free one. Prints `listening on <url>`, which the suite waits for. */
export async function listen(
  banner: string,
  port: number,
  listener: RequestListener,
): Promise<RunningServer> {
  const server = createServer(listener);
  // Clients keep their connections for the whole run.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  console.log(`${banner} listening on ${url}`);
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { server, url, close };
}

/** Looks at a request before it is answered; a reply refuses it. */
export type Guard = (request: IncomingMessage, body: string) => RpcReply | undefined;

export const serveRpc = (service: RpcService, port: number, guard?: Guard): Promise<RunningServer> =>
  listen(service.banner, port, (request, response) => {
    void answer(service, request, guard).then((reply) => {
      response.writeHead(reply.status, {
        "content-type": reply.contentType,
        "content-length": Buffer.byteLength(reply.body),
      });
      response.end(reply.body);
    });
  });

async function answer(service: RpcService, request: IncomingMessage, guard?: Guard): Promise<RpcReply> {
  const path = (request.url ?? "/").split("?")[0] ?? "/";
  if (request.method !== "POST" || path !== "/rpc") {
    request.resume();
    return answerOther(service, request.method ?? "GET", path);
  }
  try {
    const body = await bodyOf(request);
    return guard?.(request, body) ?? (await answerRpc(service, body));
  } catch (error) {
    return jsonReply(400, { ok: false, error: error instanceof Error ? error.message : String(error) });
  }
}

/** Of a body that is larger than a server reads. */
export class TooLarge extends Error {}

export function bodyOf(request: IncomingMessage, bytesMax = bodyBytesMax): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= bytesMax) chunks.push(chunk);
    });
    request.on("end", () => {
      if (bytes > bytesMax) reject(new TooLarge(`a body of more than ${bytesMax} bytes`));
      else resolve(Buffer.concat(chunks).toString("utf8"));
    });
    request.on("error", reject);
  });
}

/** The port that a server listens on: the first of the variables that is set. */
export function portOfEnvironment(variables: readonly string[], fallback: number): number {
  const name = variables.find((variable) => process.env[variable]);
  const port = name === undefined ? fallback : Number(process.env[name]);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new Error(`invalid port in ${name}: ${process.env[name ?? ""]}`);
  }
  return port;
}

interface Closable {
  close(): unknown;
}

/** Serves on top of what is open already, and closes both at the end. */
export async function servedOn(opened: Closable, serve: () => Promise<Closable>): Promise<Closable> {
  try {
    const served = await serve();
    return {
      async close() {
        await served.close();
        await opened.close();
      },
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Runs a server as a program: errors at the start end it with a message, signals close what it holds. */
export function runAsProgram(start: () => Promise<Closable>): void {
  const fail = (error: unknown) => {
    console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  };
  start().then((running) => {
    let isStopping = false;
    const stop = () => {
      if (isStopping) return;
      isStopping = true;
      Promise.resolve(running.close()).then(() => process.exit(0), fail);
    };
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, stop);
  }, fail);
}
