// Payloads and the end of a connection arrive in the order in which the server sent them, however long inflating takes.

import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { decompressPayload } from "../../src/client/compression";
import { OrderedSocket } from "../../src/client/socket";
import { settle } from "./fake_server";

const NONE = 0;
const BROTLI = 1;
const GZIP = 2;

function payload(tag: number, body: Uint8Array): ArrayBuffer {
  const packed = tag === GZIP ? gzipSync(body) : tag === BROTLI ? brotliCompressSync(body) : body;
  return new Uint8Array([tag, ...packed]).buffer;
}

class RawSocket {
  onmessage: (event: { data: unknown }) => void = () => {};
  onclose: (event: unknown) => void = () => {};
  onerror: (event: unknown) => void = () => {};
  readyState = 1;
  protocol = "v3.bsatn.spacetimedb";
  wasClosed = false;
  close(): void {
    this.wasClosed = true;
    this.onclose({});
  }
}

function socketWithLog(): { raw: RawSocket; log: string[] } {
  const raw = new RawSocket();
  const socket = new OrderedSocket(raw as unknown as WebSocket);
  const log: string[] = [];
  socket.onmessage = ({ data }) => log.push(`${data.length}:${data[0]}`);
  socket.onclose = () => log.push("closed");
  socket.onerror = ({ message }) => log.push(`error ${message}`);
  return { raw, log };
}

describe("order", () => {
  test("a small payload does not overtake a large one that is being inflated", async () => {
    const { raw, log } = socketWithLog();
    const large = new Uint8Array(5_000_000).fill(1);
    raw.onmessage({ data: payload(GZIP, large) });
    raw.onmessage({ data: payload(NONE, new Uint8Array([2])) });
    raw.onmessage({ data: payload(GZIP, new Uint8Array([3])) });
    raw.onmessage({ data: payload(BROTLI, new Uint8Array([4, 4])) });
    raw.onmessage({ data: payload(NONE, new Uint8Array([5])) });
    raw.onclose({});
    expect(log).toEqual([]);
    while (!log.includes("closed")) await settle();
    expect(log).toEqual(["5000000:1", "1:2", "1:3", "2:4", "1:5", "closed"]);
  });

  test("random sequences of payloads", async () => {
    for (let round = 0; round < 20; round++) {
      const { raw, log } = socketWithLog();
      const expected: string[] = [];
      for (let i = 0; i < 30; i++) {
        const size = 1 + ((i * 7919 + round * 104_729) % 50_000);
        expected.push(`${size}:${i}`);
        raw.onmessage({ data: payload((i * 31 + round) % 3, new Uint8Array(size).fill(i)) });
        if ((i + round) % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      while (log.length < expected.length) await settle();
      expect(log).toEqual(expected);
    }
  });

  test("what is not compressed is delivered at once", () => {
    const { raw, log } = socketWithLog();
    raw.onmessage({ data: payload(NONE, new Uint8Array([9])) });
    expect(log).toEqual(["1:9"]);
  });
});

test("more than can be inflated is not kept: the connection is lost", async () => {
  const { raw, log } = socketWithLog();
  raw.onmessage({ data: payload(GZIP, new Uint8Array(5_000_000)) });
  const large = payload(NONE, new Uint8Array(16 * 1024 * 1024));
  // Just above the bound; what has come by then is not thrown away.
  for (let i = 0; i < 16; i++) raw.onmessage({ data: large });
  expect(raw.wasClosed).toBe(false);
  raw.onmessage({ data: large });
  expect(raw.wasClosed).toBe(true);
  while (!log.includes("closed")) await settle();
  expect(log[0]).toContain("LC0831");
  expect(log).toHaveLength(2);
});

describe("data that cannot be read", () => {
  test.each<[string, unknown, string]>([
    ["text", "hello", "LC0844"],
    ["an unknown compression", new Uint8Array([3, 1]).buffer, "LC0843"],
    ["nothing", new Uint8Array([]).buffer, "LC0843"],
    ["damaged gzip", new Uint8Array([GZIP, 1, 2, 3]).buffer, "LC0843"],
    ["damaged brotli", new Uint8Array([BROTLI, 255, 255, 255, 255]).buffer, "LC0843"],
  ])("%s ends the connection, and nothing after it is delivered", async (_, data, code) => {
    const { raw, log } = socketWithLog();
    raw.onmessage({ data: payload(NONE, new Uint8Array([1])) });
    raw.onmessage({ data });
    raw.onmessage({ data: payload(NONE, new Uint8Array([2])) });
    while (log.length < 3) await settle();
    expect(log[0]).toBe("1:1");
    expect(log[1]).toContain(`[${code}]`);
    expect(log[2]).toBe("closed");
    expect(log).toHaveLength(3);
    expect(raw.wasClosed).toBe(true);
  });
});

test("vectors of the protocol: gzip and brotli of the same message", async () => {
  const plain =
    "010100000007000000020000000500000073636f72650005000a000000010000000a0200000014" +
    "06000000706572736f6e010200000000000000000000000d0000000000000018000000" +
    "0100000005000000416c6963650200000003000000426f62";
  const gzip =
    "021f8b0800000000000403358c410a8030100367952a14bc79f03bfa14cb1e0471a5fd3f48a0e6943043cc8019188004b412d54964402c0bac13" +
    "f07a6df198f69fa597adcb3ad8efabb8a41138e2fc00e076edc362000000";
  const brotli =
    "018b30000080aaaaaaea1f550dd4144001ec6607bb5dcd4e4753d0830118981aa8424deeb607b6a01d0688618081c7d0712a13bf109011913" +
    "06b1f4d52d0632959f7157f1bb37f81d1e616e231489d9ce7fbd416b1e0eaf7";
  for (const hex of [`00${plain}`, gzip, brotli]) {
    const data = new Uint8Array(Buffer.from(hex, "hex"));
    const body = await decompressPayload(data);
    expect(Buffer.from(body).toString("hex")).toBe(plain);
  }
});
