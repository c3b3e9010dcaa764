// The HTTP RPC format, its server and its client, and the frames of the batched server (chapter 09, sections 9 and 13).

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { isRefusal } from "../src/connectors/connector";
import { RpcConnector } from "../src/connectors/rpc/rpc_connector";
import {
  readAnswers,
  readRequests,
  status,
  writeAnswer,
  writeRequest,
} from "../src/rpc-servers/batched_frames";
import { type RunningRpcServer, serveRpc } from "../src/rpc-servers/node_rpc_server";
import {
  accountId,
  answerRpc,
  BadArguments,
  type RpcService,
  transferArguments,
} from "../src/rpc-servers/rpc";

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
  it.each([
    ['{"name":"health"}', 200, '{"ok":true,"result":{"status":"ok"}}'],
    ['{"name":"transfer","args":{"amount":1,"from_id":17,"to_id":42}}', 200, '{"ok":true}'],
    ['{"name":"transfer","args":{"amount":"1","from":17,"to":"42"}}', 200, '{"ok":true}'],
    [
      '{"name":"transfer","args":{"amount":1,"from_id":1.5,"to_id":42}}',
      500,
      '{"ok":false,"error":"invalid transfer args"}',
    ],
    ['{"name":"transfer"}', 500, '{"ok":false,"error":"invalid transfer args"}'],
    ['{"name":"getAccount","args":{"id":17}}', 200, '{"ok":true,"result":{"id":17,"balance":"10"}}'],
    ['{"name":"getAccount","args":{"id":"x"}}', 500, '{"ok":false,"error":"invalid id"}'],
    ["{", 400, '{"ok":false,"error":"invalid json"}'],
    ["null", 400, '{"ok":false,"error":"invalid json"}'],
    ["{}", 500, '{"ok":false,"error":"missing name"}'],
    ['{"name":"toString"}', 500, '{"ok":false,"error":"unknown method: toString"}'],
    ['{"name":"fail"}', 500, '{"ok":false,"error":"the disk is full"}'],
  ])("%s", async (body, expected, answer) => {
    const reply = await answerRpc(service, body);
    expect([reply.status, reply.body, reply.contentType]).toEqual([expected, answer, "application/json"]);
  });

  it("hides the texts of errors where it shall, but not those about arguments", async () => {
    const hiding = { ...service, hiddenErrorText: "internal error" };
    expect((await answerRpc(hiding, '{"name":"fail"}')).body).toBe('{"ok":false,"error":"internal error"}');
    expect((await answerRpc(hiding, '{"name":"refuse"}')).body).toBe('{"ok":false,"error":"invalid id"}');
  });
});

describe("over HTTP", () => {
  let running: RunningRpcServer | undefined;
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
    const connector = new RpcConnector({ name: "test", url: `${running.url}/`, initialBalance: 10 });
    await connector.open();
    expect(await connector.call("transfer", { amount: 1, from_id: 17, to_id: 42 })).toBeUndefined();
    expect(await connector.getAccount(17)).toEqual({ id: 17, balance: 10n });
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
    const plain = new RpcConnector({ name: "test", url, initialBalance: 0 });
    const bun = new RpcConnector({ name: "bun", url, initialBalance: 0, alwaysSendsArguments: true });
    await plain.call("health").catch(() => undefined);
    await plain.call("transfer", { amount: 1, from_id: 17, to_id: 42 }).catch(() => undefined);
    expect(await bun.call("health")).toEqual({});
    server.close();
    server.closeAllConnections();
    expect(bodies).toEqual([
      '{"name":"health"}',
      '{"name":"transfer","args":{"amount":1,"from_id":17,"to_id":42}}',
      '{"name":"health","args":{}}',
    ]);
  });

  it("says what came instead of JSON", async () => {
    const server = createServer((_, response) => response.end("<html>".repeat(100)));
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const connector = new RpcConnector({ name: "test", url, initialBalance: 0 });
    await expect(connector.open()).rejects.toThrow(/the answer to health is not JSON: (<html>){33}<h$/);
    server.close();
    server.closeAllConnections();
    await expect(connector.open()).rejects.toThrow("fetch failed");
  });
});

describe("frames of the batched server", () => {
  it("are those of the chapter", () => {
    const frame = new DataView(new ArrayBuffer(40));
    writeRequest(frame, 0, { id: 1, from: 17, to: 42, amount: 1 });
    writeRequest(frame, 20, { id: 2, from: 0, to: 99999, amount: 1 });
    const bytes = Buffer.from(frame.buffer);
    expect(bytes.toString("hex")).toBe(
      "01000000110000002a000000010000000000000002000000000000009f8601000100000000000000",
    );
    expect(readRequests(bytes)).toEqual([
      { id: 1, from: 17, to: 42, amount: 1 },
      { id: 2, from: 0, to: 99999, amount: 1 },
    ]);
    const answers = new DataView(new ArrayBuffer(10));
    writeAnswer(answers, 0, 1, status.applied);
    writeAnswer(answers, 5, 2, status.insufficient);
    expect(Buffer.from(answers.buffer).toString("hex")).toBe("01000000000200000001");
    const read: number[][] = [];
    readAnswers(new Uint8Array(answers.buffer), (id, answer) => read.push([id, answer]));
    expect(read).toEqual([
      [1, 0],
      [2, 1],
    ]);
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
