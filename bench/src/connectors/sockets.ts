// The WebSockets of every client SDK of the suite: one library for all rows, or a comparison would be one of libraries.

import { WebSocket as UndiciWebSocket } from "undici";
import { WebSocket as WsWebSocket } from "ws";
import { UsageError } from "../config";

/** Before the suite has put another one there. */
const platformSocket: unknown = Reflect.get(globalThis, "WebSocket");

/**
 * `BENCH_WEBSOCKET=platform` takes what Node has, or, as Node 20 has none, that of undici, for which the published package
 * asks. `ws` costs the client less; it is for all SDKs alike.
 */
function chosen(): { name: string; type: unknown } {
  const choice = process.env["BENCH_WEBSOCKET"] || "ws";
  if (choice === "ws") return { name: "ws", type: WsWebSocket };
  if (choice !== "platform") throw new UsageError(`BENCH_WEBSOCKET is ws or platform, not ${choice}`);
  return platformSocket === undefined
    ? { name: "undici", type: UndiciWebSocket }
    : { name: "Node.js", type: platformSocket };
}

/** For the column of the transport. */
export const socketTransport = (): string => `WebSocket by ${chosen().name}`;

/** Puts the class where SDKs look for it. */
export function useSockets(): void {
  Object.assign(globalThis, { WebSocket: chosen().type });
}
