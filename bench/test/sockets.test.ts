// A comparison of two client SDKs must not be one of two socket libraries.

import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { socketTransport, useSockets } from "../src/connectors/sockets";

const own = Reflect.get(globalThis, "WebSocket");

afterEach(() => {
  delete process.env["BENCH_WEBSOCKET"];
  Object.assign(globalThis, { WebSocket: own });
});

describe("the sockets of the client SDKs", () => {
  it("are those of one library, and the transport says which", () => {
    useSockets();
    expect(Reflect.get(globalThis, "WebSocket")).toBe(WebSocket);
    expect(socketTransport()).toBe("WebSocket by ws");
    process.env["BENCH_WEBSOCKET"] = "platform";
    useSockets();
    expect(Reflect.get(globalThis, "WebSocket")).not.toBe(WebSocket);
    expect(socketTransport()).toMatch(/^WebSocket by (undici|Node\.js)$/);
  });

  it("are a choice of two", () => {
    process.env["BENCH_WEBSOCKET"] = "other";
    expect(() => useSockets()).toThrow("BENCH_WEBSOCKET is ws or platform, not other");
  });

  it("are chosen in one place", async () => {
    const { readdirSync, readFileSync } = await import("node:fs");
    const { join } = await import("node:path");
    const directory = join(import.meta.dirname, "..", "src");
    const files = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith(".ts"),
    );
    const setters = files.filter((name) =>
      /assign\(globalThis, \{ WebSocket/.test(readFileSync(join(directory, name), "utf8")),
    );
    expect(setters).toEqual([join("connectors", "sockets.ts")]);
  });
});
