// The HTTP RPC format, its server and its client, and the frames of the batched server (chapter 09, sections 9 and 13).

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { isRefusal } from "../src/connectors/connector";
import { rpcConnection } from "../src/connectors/rpc/rpc_connector";
import { accountId, transferArguments } from "../src/rpc-servers/accounts";
import {
  answerBytes,
  type BatchedRequest,
  readAnswers,
  readRequests,
  requestBytes,
  status,
  writeAnswer,
  writeRequest,
} from "../src/rpc-servers/batched_frames";
import { type RunningServer, serveRpc } from "../src/rpc-servers/node_rpc_server";
import { answerRpc, BadArguments, type RpcService } from "../src/rpc-servers/rpc";
import { tested, vectors } from "./support/vectors";

interface RpcVectors {
  requests: { name: string; path?: string; body: string; bytes?: number }[];
  answers: { to: string; status: number; body: string }[];
  binary_frames: {
    name: string;
    requests?: BatchedRequest[];
    answers?: { id: number; status: number }[];
    hex: string;
  }[];
}

const rpcVectors = vectors<RpcVectors>("09-rpc.json");

const service: RpcService = {
  banner: "test drizzle rpc server",
  methods: {
    health: () => ({ status: "ok" }),
    transfer: (args) => void transferArguments(args),
    getAccount: (args) => ({ id: accountId(args), balance: "10" }),
    fail: () => {
      throw new Error("the disk is full");
    },
    refuse: () => {
      throw new BadArguments("invalid id");
    },
  },
};

describe("answers", () => {
  const expectAnswer = async (body: string, expected: { status: number; body: string }) => {
    const reply = await answerRpc(service, body);
    expect(reply).toMatchObject({
      status: expected.status,
      body: expected.body,
      contentType: "application/json",
    });
  };

  it.each(tested(rpcVectors.answers))("of the chapter to $to", async ({ to, ...expected }) => {
    const request = rpcVectors.requests.find(({ name }) => name === to);
    await expectAnswer(request?.body ?? to, expected);
  });

  it.each([
    ['{"name":"transfer","args":{"amount":"1","from":17,"to":"42"}}', 200, '{"ok":true}'],
    [
      '{"name":"transfer","args":{"amount":1,"from_id":1.5,"to_id":42}}',
      500,
      '{"ok":false,"error":"invalid transfer args"}',
    ],
    ["null", 400, '{"ok":false,"error":"invalid json"}'],
    ['{"name":"fail"}', 500, '{"ok":false,"error":"the disk is full"}'],
  ])("%s", async (body, status, answer) => {
    await expectAnswer(body, { status, body: answer });
  });

  it("hides the texts of errors where it shall, but not those about arguments", async () => {
    const hiding = { ...service, hiddenErrorText: "internal error" };
    expect((await answerRpc(hiding, '{"name":"fail"}')).body).toBe('{"ok":false,"error":"internal error"}');
    expect((await answerRpc(hiding, '{"name":"refuse"}')).body).toBe('{"ok":false,"error":"invalid id"}');
  });
});

describe("over HTTP", () => {
  let running: RunningServer | undefined;
  afterEach(() => running?.close());

  it("answers POST /rpc, a banner, and 404", async () => {
    running = await serveRpc(service, 0);
    const banner = await fetch(running.url);
    expect([banner.status, await banner.text()]).toEqual([200, service.banner]);
    for (const request of [
      fetch(`${running.url}/other`),
      fetch(`${running.url}/rpc`),
      fetch(running.url, { method: "POST" }),
    ]) {
      const answer = await request;
      expect([answer.status, await answer.text()]).toEqual([404, "not found"]);
    }
    const connector = rpcConnection({ name: "test", url: `${running.url}/`, initialBalance: 10 });
    await connector.open();
    expect(await connector.call("transfer", { amount: 1, from_id: 17, to_id: 42 })).toBeUndefined();
    expect(await connector.getAccount!(17)).toEqual({ id: 17, balance: 10n });
    const failure = await connector.call("fail").catch((error: unknown) => error);
    expect(String(failure)).toContain("the disk is full");
    expect(isRefusal(failure)).toBe(true);
  });

  it("sends the bytes of the chapter", async () => {
    const bodies: string[] = [];
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk) => (body += chunk));
      request.on("end", () => {
        bodies.push(body);
        response.setHeader("content-type", request.headers["content-type"] ?? "");
        response.end("{}");
      });
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const plain = rpcConnection({ name: "test", url, initialBalance: 0 });
    const bun = rpcConnection({ name: "bun", url, initialBalance: 0, alwaysSendsArguments: true });
    // Those with a path are of another connector: convex.test.ts.
    const requests = tested(rpcVectors.requests).filter(({ path }) => path === undefined);
    for (const { name, body } of requests) {
      const call = JSON.parse(body) as { name: string; args?: Record<string, unknown> };
      const connector = name.includes("bun's client") ? bun : plain;
      const sent = call.args && Object.keys(call.args).length > 0 ? call.args : undefined;
      await connector.call(call.name, sent).catch(() => undefined);
    }
    expect(await bun.call("health")).toEqual({});
    server.close();
    server.closeAllConnections();
    expect(bodies.slice(0, -1)).toEqual(requests.map(({ body }) => body));
    for (const { body, bytes } of requests) if (bytes) expect(Buffer.byteLength(body)).toBe(bytes);
  });

  it("says what came instead of JSON", async () => {
    const server = createServer((_, response) => response.end("<html>".repeat(100)));
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const connector = rpcConnection({ name: "test", url, initialBalance: 0 });
    await expect(connector.open()).rejects.toThrow(/the answer to health is not JSON: (<html>){33}<h$/);
    server.close();
    server.closeAllConnections();
    await expect(connector.open()).rejects.toThrow("fetch failed");
  });
});

describe("frames of the batched server", () => {
  it.each(tested(rpcVectors.binary_frames))(
    "are those of the chapter: $name",
    ({ requests, answers, hex }) => {
      const count = requests?.length ?? answers!.length;
      const frame = new DataView(new ArrayBuffer(count * (requests ? requestBytes : answerBytes)));
      for (const [index, request] of (requests ?? []).entries()) {
        writeRequest(frame, index * requestBytes, request);
      }
      for (const [index, { id, status }] of (answers ?? []).entries()) {
        writeAnswer(frame, index * answerBytes, id, status);
      }
      const bytes = Buffer.from(frame.buffer);
      expect(bytes.toString("hex")).toBe(hex);
      if (requests) expect(readRequests(bytes)).toEqual(requests);
      const read: { id: number; status: number }[] = [];
      readAnswers(bytes, (id, status) => read.push({ id, status }));
      if (answers) expect(read).toEqual(answers);
    },
  );

  it("have the numbers of the chapter for what became of a transfer", () => {
    expect([status.applied, status.insufficient]).toEqual([0, 1]);
  });

  it("keep large and negative amounts, and refuse half records", () => {
    for (const amount of [-1, 2 ** 40 + 5, -(2 ** 33)]) {
      const frame = new DataView(new ArrayBuffer(20));
      writeRequest(frame, 0, { id: 1, from: 1, to: 2, amount });
      expect(readRequests(new Uint8Array(frame.buffer))![0]!.amount).toBe(amount);
    }
    expect(readRequests(new Uint8Array(19))).toBeUndefined();
  });
});
