// The example docs/examples/outbox.ts, against a server that ends its streams and a webhook that fails.

import { mkdtemp, readFile } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { PlaceGone, run } from "../../docs/examples/outbox";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const told = (id: number, changes: object[]) =>
  `id: ${id}-ab\ndata: ${JSON.stringify({ id: `${id}-ab`, offset: id - 1, changes })}\n\n`;

test("rows are delivered in order, also over failures on both sides", async () => {
  const streams = [
    `id: 4-ab\nevent: begin\ndata: {"id":"4-ab","tables":[]}\n\n${told(5, [
      { table: "outbox", insert: [{ n: 1 }, { n: 2 }] },
    ])}: nothing\nid: 7-ab\n\n`,
    // The rest of an event that is cut off comes again.
    told(8, [{ table: "outbox", delete: [{ n: 1 }] }]) + told(9, [{ insert: [{ n: 3 }] }]).slice(0, 20),
    `${told(9, [{ insert: [{ n: "broken" }] }, { put: [{ n: 4 }] }])}event: end\ndata: {"code":"LC0511"}\n\n`,
  ];
  const asked: (string | undefined)[] = [];
  const server = await serve((request, response) => {
    expect(request.url).toBe("/v1/database/shop/changes?tables=outbox");
    expect(request.headers.authorization).toBe("Bearer secret");
    asked.push(request.headers["last-event-id"]?.toString());
    const stream = streams.shift();
    response.writeHead(stream === undefined ? 410 : 200);
    response.end(stream ?? "trimmed [LC0511]");
  });
  const taken: string[] = [];
  let failures = 2;
  const webhook = await serve(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    if (body.includes("broken")) response.writeHead(422);
    else if (failures-- > 0) response.writeHead(503);
    else taken.push(`${request.headers["idempotency-key"]} ${body}`);
    response.end();
  });
  const files = join(await mkdtemp(join(tmpdir(), "outbox-")), "shop");
  const outbox = { server, webhook, files, database: "shop", table: "outbox", token: "secret" };
  await expect(run({ ...outbox, pauseMs: 1 })).rejects.toThrow(PlaceGone);
  expect(taken).toEqual(['shop-4-0 {"n":1}', 'shop-4-1 {"n":2}', 'shop-8-1 {"n":4}']);
  expect(asked).toEqual([undefined, "7-ab", "8-ab", "9-ab"]);
  expect(await readFile(`${files}.place`, "utf8")).toBe("9-ab");
  expect(await readFile(`${files}.dead`, "utf8")).toBe('{"key":"shop-8-0","row":{"n":"broken"}}\n');
});
