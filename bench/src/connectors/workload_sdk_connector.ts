// Connections by a client SDK for workloads besides test-1: any reducer and procedure of a module, by name.

import { WebSocket as UndiciWebSocket } from "undici";
import { type Config, webSocketUrl } from "../config";
import type { Account, CallArguments, Connector, VerifyTotals } from "./connector";

// Node 20 has no WebSocket of its own; both SDKs look for this one.
Object.assign(globalThis, { WebSocket: globalThis.WebSocket ?? UndiciWebSocket });

type Call = (args: CallArguments) => Promise<unknown>;

/** What is used of the connection of either SDK; generated bindings have it with their own types. */
interface SdkConnection {
  reducers: object;
  procedures: object;
  disconnect(): void;
}

interface SdkBuilder {
  withUri(uri: string): SdkBuilder;
  withDatabaseName(name: string): SdkBuilder;
  withCompression(compression: "none" | "gzip"): SdkBuilder;
  withConfirmedReads(confirmed: boolean): SdkBuilder;
  onConnect(callback: (connection: unknown) => void): SdkBuilder;
  onConnectError(callback: (context: unknown, error: Error) => void): SdkBuilder;
  build(): unknown;
}

export interface WorkloadSdkOptions {
  name: string;
  /** A fresh builder of the bindings. */
  builder: () => unknown;
  address: string;
  database: string;
  config: Config;
}

export class WorkloadSdkConnector implements Connector {
  readonly name: string;
  #connection: SdkConnection | undefined;

  constructor(private readonly options: WorkloadSdkOptions) {
    this.name = options.name;
  }

  async open(): Promise<void> {
    const { builder, address, database, config, name } = this.options;
    this.#connection = await new Promise<SdkConnection>((resolve, reject) => {
      (builder() as SdkBuilder)
        .withUri(webSocketUrl(address))
        .withDatabaseName(database)
        .withCompression(config.stdbCompression)
        .withConfirmedReads(config.stdbConfirmedReads)
        .onConnect((connection) => resolve(connection as SdkConnection))
        .onConnectError((_context, error) =>
          reject(new Error(`${name}: no connection to ${database} at ${address}: ${error.message}`)),
        )
        .build();
    });
  }

  async close(): Promise<void> {
    this.#connection?.disconnect();
    this.#connection = undefined;
  }

  async createWorker(): Promise<Connector> {
    const worker = new WorkloadSdkConnector(this.options);
    await worker.open();
    return worker;
  }

  get #open(): SdkConnection {
    if (!this.#connection) throw new Error(`${this.name}: not open`);
    return this.#connection;
  }

  /** Calls a reducer or a procedure, by its name in the bindings. */
  call(name: string, args: CallArguments = {}): Promise<unknown> {
    const { reducers, procedures } = this.#open;
    const call = ((reducers as Record<string, Call>)[name] ?? (procedures as Record<string, Call>)[name]) as
      | Call
      | undefined;
    if (!call) return Promise.reject(new Error(`${this.name}: the module has no function ${name}`));
    return call(args);
  }

  getAccount(): Promise<Account | null> {
    return Promise.reject(new Error(`${this.name}: this module has no accounts`));
  }

  verify(): Promise<VerifyTotals> {
    return Promise.reject(new Error(`${this.name}: this module has no accounts`));
  }
}
