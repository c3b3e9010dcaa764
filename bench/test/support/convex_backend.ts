// A stand-in for the backend of Convex: its HTTP API, in front of the functions of `convex-app`, which the package
// `convex-test` runs in memory.

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import shardedCounter from "@convex-dev/sharded-counter/test";
import { makeFunctionReference } from "convex/server";
import { convexTest } from "convex-test";
import schema from "../../convex-app/convex/schema";

const modules = {
  // The harness finds the root of the app by this name.
  "../../convex-app/convex/_generated/api.js": async () => ({}),
  "../../convex-app/convex/accounts.ts": () => import("../../convex-app/convex/accounts"),
  "../../convex-app/convex/content.ts": () => import("../../convex-app/convex/content"),
  "../../convex-app/convex/jobs.ts": () => import("../../convex-app/convex/jobs"),
  "../../convex-app/convex/seed.ts": () => import("../../convex-app/convex/seed"),
  "../../convex-app/convex/transfer.ts": () => import("../../convex-app/convex/transfer"),
  "../../convex-app/convex/ycsb.ts": () => import("../../convex-app/convex/ycsb"),
};

export interface ConvexBackend {
  url: string;
  /** Every request as it arrived: method, path with query, body. */
  requests: string[];
  /** The next calls fail as the backend reports a failure of the function. */
  failNext(calls: number, errorMessage: string): void;
  close(): Promise<void>;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

export async function startConvexBackend(): Promise<ConvexBackend> {
  const app = convexTest(schema, modules);
  shardedCounter.register(app, "shardedCounter");
  const requests: string[] = [];
  let failures = 0;
  let failureMessage = "";

  const run = async (path: string, body: string): Promise<unknown> => {
    const call = JSON.parse(body) as { path: string; args: Record<string, unknown> };
    if (path === "/api/query?format=json") {
      return app.query(makeFunctionReference<"query">(call.path), call.args);
    }
    if (path === "/api/mutation?format=json") {
      return app.mutation(makeFunctionReference<"mutation">(call.path), call.args);
    }
    throw new Error(`no such route: ${path}`);
  };

  const server = createServer((request, response) => {
    void (async () => {
      const body = await bodyOf(request);
      requests.push(`${request.method} ${request.url} ${body}`);
      let answer: Record<string, unknown>;
      try {
        if (failures > 0) {
          failures -= 1;
          throw new Error(failureMessage);
        }
        answer = { status: "success", value: (await run(request.url ?? "", body)) ?? null, logLines: [] };
      } catch (error) {
        // A function that failed is still a request that was answered: HTTP 200.
        answer = { status: "error", errorMessage: String((error as Error).message), logLines: [] };
      }
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(answer));
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    failNext(calls, errorMessage) {
      failures = calls;
      failureMessage = errorMessage;
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
