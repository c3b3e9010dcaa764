// Connections of the published npm package, as promises.

import { gunzipSync } from "node:zlib";
import type { Identity } from "spacetimedb";
import { setGlobalLogLevel } from "spacetimedb";
import { WebSocket as UndiciWebSocket } from "undici";
import { DbConnection as BoardsConnection } from "./bindings/boards";
import { DbConnection as CoverageConnection } from "./bindings/coverage";
import { DbConnection as RoomsConnection } from "./bindings/rooms";
import { DbConnection as ShopConnection } from "./bindings/shop";
import { DbConnection as TransferConnection } from "./bindings/transfer";
import { DbConnection as ViewsConnection } from "./bindings/views";
import type { Server } from "./server";

// Node 20 has no global WebSocket; the package looks for this one.
Object.assign(globalThis, { WebSocket: globalThis.WebSocket ?? UndiciWebSocket });
setGlobalLogLevel("error");

type WebSocketFactory = Parameters<ReturnType<typeof TransferConnection.builder>["withWSFn"]>[0];

export interface SdkOptions {
  token?: string;
  compression?: "gzip" | "none";
  confirmed?: boolean;
  light?: boolean;
  webSocket?: WebSocketFactory;
}

export interface Connected<C> {
  connection: C;
  identity: Identity;
  token: string;
  /** Resolves when the connection has ended. */
  ended: Promise<Error | undefined>;
}

type Builder =
  | ReturnType<typeof BoardsConnection.builder>
  | ReturnType<typeof CoverageConnection.builder>
  | ReturnType<typeof RoomsConnection.builder>
  | ReturnType<typeof ShopConnection.builder>
  | ReturnType<typeof TransferConnection.builder>
  | ReturnType<typeof ViewsConnection.builder>;

function connect<C>(
  builder: Builder,
  server: Server,
  database: string,
  options: SdkOptions,
): Promise<Connected<C>> {
  return new Promise((resolve, reject) => {
    let end!: (error: Error | undefined) => void;
    const ended = new Promise<Error | undefined>((done) => (end = done));
    // The builders have the same methods; their types differ in the rows of the callbacks only.
    let b = (builder as ReturnType<typeof CoverageConnection.builder>)
      .withUri(server.wsUrl)
      .withDatabaseName(database)
      .withCompression(options.compression ?? "gzip")
      .withToken(options.token)
      .onConnect((connection, identity, token) =>
        resolve({ connection: connection as unknown as C, identity, token, ended }),
      )
      .onConnectError((_context, error) => reject(error))
      .onDisconnect((_context, error) => end(error));
    if (options.confirmed !== undefined) b = b.withConfirmedReads(options.confirmed);
    if (options.light !== undefined) b = b.withLightMode(options.light);
    if (options.webSocket) b = b.withWSFn(options.webSocket);
    b.build();
  });
}

export const connectBoards = (server: Server, database: string, options: SdkOptions = {}) =>
  connect<BoardsConnection>(BoardsConnection.builder(), server, database, options);

export const connectCoverage = (server: Server, database: string, options: SdkOptions = {}) =>
  connect<CoverageConnection>(CoverageConnection.builder(), server, database, options);

export const connectRooms = (server: Server, database: string, options: SdkOptions = {}) =>
  connect<RoomsConnection>(RoomsConnection.builder(), server, database, options);

export const connectShop = (server: Server, database: string, options: SdkOptions = {}) =>
  connect<ShopConnection>(ShopConnection.builder(), server, database, options);

export const connectTransfer = (server: Server, database: string, options: SdkOptions = {}) =>
  connect<TransferConnection>(TransferConnection.builder(), server, database, options);

export const connectViews = (server: Server, database: string, options: SdkOptions = {}) =>
  connect<ViewsConnection>(ViewsConnection.builder(), server, database, options);

export interface Socket {
  /** Compression tags of the payloads, in order. */
  tags: number[];
  factory: WebSocketFactory;
  protocol(): string;
  url(): URL;
}

/** A socket for the package that offers only these protocols and remembers what it saw. */
export function recordingSocket(protocols?: string[]): Socket {
  const tags: number[] = [];
  let url: URL | undefined;
  let socket: UndiciWebSocket | undefined;
  const factory: WebSocketFactory = async (args) => {
    url = new URL(`v1/database/${args.nameOrAddress}/subscribe`, args.url);
    url.searchParams.set("compression", args.compression === "gzip" ? "Gzip" : "None");
    if (args.confirmedReads !== undefined) url.searchParams.set("confirmed", String(args.confirmedReads));
    if (args.authToken) url.searchParams.set("token", args.authToken);
    const ws = new UndiciWebSocket(url, protocols ?? args.wsProtocol);
    ws.binaryType = "arraybuffer";
    socket = ws;
    return {
      get protocol() {
        return ws.protocol;
      },
      send: (data: Uint8Array<ArrayBuffer>) => ws.send(data),
      close: () => ws.close(),
      set onopen(handler: () => void) {
        ws.onopen = handler;
      },
      set onclose(handler: (event: CloseEvent) => void) {
        ws.onclose = handler as unknown as typeof ws.onclose;
      },
      set onerror(handler: (event: ErrorEvent) => void) {
        ws.onerror = handler as unknown as typeof ws.onerror;
      },
      set onmessage(handler: (message: { data: Uint8Array }) => void) {
        ws.onmessage = (event) => {
          const payload = Buffer.from(event.data as ArrayBuffer);
          tags.push(payload[0]);
          handler({
            data: new Uint8Array(payload[0] === 2 ? gunzipSync(payload.subarray(1)) : payload.subarray(1)),
          });
        };
      },
    };
  };
  return { tags, factory, protocol: () => socket?.protocol ?? "", url: () => url! };
}

interface Subscribable {
  subscriptionBuilder(): {
    onApplied(callback: () => void): ReturnType<Subscribable["subscriptionBuilder"]>;
    onError(callback: (context: { event?: Error }) => void): ReturnType<Subscribable["subscriptionBuilder"]>;
    subscribe(queries: string[]): { unsubscribeThen(callback: () => void): void };
  };
}

/** Subscribes and waits for the rows. */
export function subscribe(
  connection: CoverageConnection | TransferConnection,
  ...queries: string[]
): Promise<{ unsubscribe(): Promise<void> }> {
  return new Promise((resolve, reject) => {
    const handle = (connection as unknown as Subscribable)
      .subscriptionBuilder()
      .onApplied(() => resolve({ unsubscribe: () => new Promise((done) => handle.unsubscribeThen(done)) }))
      .onError((context) => reject(context.event ?? new Error("subscription failed")))
      .subscribe(queries);
  });
}
