// Both HTTP clients send the same and understand the same.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpSoftware, httpTransport, sendHttp } from "../src/connectors/http_client";
import { withEnvironment } from "./support/preparation";

let server: Server;
let url: string;

beforeAll(async () => {
  // Says what it got, with the status that the path asks for.
  server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { authorization } = request.headers;
    const text = JSON.stringify([request.method, request.url, authorization, body]);
    response.writeHead(Number(/\d+/.exec(request.url!)![0]), { "server-timing": "total;dur=1.5" });
    response.end(request.url === "/204" ? "" : text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const using = <T>(client: string | undefined, action: () => Promise<T>) =>
  withEnvironment({ BENCH_HTTP_CLIENT: client }, action);

describe.each([undefined, "fetch", "undici"])("BENCH_HTTP_CLIENT=%s", (client) => {
  it("sends and receives", async () => {
    await using(client, async () => {
      const headers = { authorization: "Bearer x" };
      const post = { method: "POST", headers, body: '{"a":"ä"}' };
      expect(await sendHttp(`${url}/201?id=1&b=%20`, post)).toEqual({
        status: 201,
        ok: true,
        text: '["POST","/201?id=1&b=%20","Bearer x","{\\"a\\":\\"ä\\"}"]',
        serverTiming: "total;dur=1.5",
      });
      expect(await sendHttp(`${url}/204`, { method: "DELETE" })).toMatchObject({
        status: 204,
        ok: true,
        text: "",
      });
      expect(await sendHttp(`${url}/500`, { method: "GET" })).toMatchObject({ status: 500, ok: false });
      const many = Array.from({ length: 20 }, () => sendHttp(`${url}/200`, { method: "GET" }));
      expect((await Promise.all(many)).every(({ status }) => status === 200)).toBe(true);
    });
  });

  it("fails where no server listens", async () => {
    await using(client, () => expect(sendHttp("http://127.0.0.1:1/", { method: "GET" })).rejects.toThrow());
  });
});

it("is named in results, and must be known", async () => {
  await using(undefined, async () => expect([httpSoftware(), httpTransport()]).toEqual(["fetch", "HTTP"]));
  await using("undici", async () =>
    expect([httpSoftware(), httpTransport()]).toEqual(["undici", "HTTP by undici"]),
  );
  await using("curl", async () =>
    expect(() => sendHttp(url, { method: "GET" })).toThrow("BENCH_HTTP_CLIENT is fetch or undici, not curl"),
  );
});
