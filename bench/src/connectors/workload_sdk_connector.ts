// Connections by a client SDK for workloads besides test-1: any reducer and procedure of a module, by name.

import { type Config, webSocketUrl } from "../config";
import type { Account, CallArguments, Connector, VerifyTotals } from "./connector";
import { useSockets } from "./sockets";

type Call = (args: CallArguments) => Promise<unknown>;

/** What is used of the connection of either SDK; generated bindings have it with their own types. */
interface SdkConnection {
  reducers: object;
  procedures: object;
  db: object;
  subscriptionBuilder(): SdkSubscriptionBuilder;
  disconnect(): void;
}

interface SdkSubscriptionBuilder {
  onApplied(callback: () => void): SdkSubscriptionBuilder;
  onError(callback: (context: { event?: unknown }) => void): SdkSubscriptionBuilder;
  subscribe(queries: string[]): unknown;
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
  /** Tables to keep in the client's cache. */
  subscribesTo?: readonly string[];
}

export class WorkloadSdkConnector implements Connector {
  readonly name: string;
  #connection: SdkConnection | undefined;

  constructor(private readonly options: WorkloadSdkOptions) {
    this.name = options.name;
  }

  async open(): Promise<void> {
    const { builder, address, database, config, name } = this.options;
    useSockets();
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
    if (this.options.subscribesTo) await this.#subscribe(this.options.subscribesTo);
  }

  #subscribe(tables: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#open
        .subscriptionBuilder()
        .onApplied(resolve)
        .onError(({ event }) =>
          reject(new Error(`${this.name}: no subscription to ${tables.join(", ")}: ${String(event)}`)),
        )
        .subscribe(tables.map((table) => `SELECT * FROM ${table}`));
    });
  }

  async close(): Promise<void> {
    this.#connection?.disconnect();
    this.#connection = undefined;
  }

  /** Workers share a connection that subscribes: there is one cache, which has what its own writes have done. */
  async createWorker(): Promise<Connector> {
    if (this.options.subscribesTo) return this;
    const worker = new WorkloadSdkConnector(this.options);
    await worker.open();
    return worker;
  }

  get #open(): SdkConnection {
    if (!this.#connection) throw new Error(`${this.name}: not open`);
    return this.#connection;
  }

  /** A table in the client's cache, by its name in the bindings. */
  cached(table: string): unknown {
    if (!this.options.subscribesTo) throw new Error(`${this.name} subscribes to nothing`);
    return (this.#open.db as Record<string, unknown>)[table];
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
