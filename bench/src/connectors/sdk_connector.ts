// Connections by a client SDK with generated bindings: the npm package, and this repository's, which has the same interface.

import { type Config, webSocketUrl } from "../config";
import { withTimeout } from "../core/clock";
import { verifiedByBalances } from "./accounts";
import type { Account, CallArguments, Connector, VerifyTotals } from "./connector";
import { useSockets } from "./sockets";

type Call = (args: CallArguments) => Promise<unknown>;
type Functions = Record<string, Call | undefined>;

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
  subscribe(queries: string[]): { unsubscribeThen(callback: () => void): void };
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

export interface SdkConnectorOptions {
  name: string;
  /** A fresh builder of the bindings. */
  builder: () => unknown;
  address: string;
  database: string;
  config: Config;
  /** The SDK's own, for arguments. */
  Timestamp?: new (
    microseconds: bigint,
  ) => unknown;
  /** Tables to keep in the client's cache. */
  subscribesTo?: readonly string[] | undefined;
}

/** `ycsbRead` for `ycsb_read`. */
const camelCase = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

const rowsMilliseconds = 60_000;

export class SdkConnector implements Connector {
  readonly name: string;
  #connection: SdkConnection | undefined;
  readonly #calls = new Map<string, Call>();

  constructor(
    private readonly options: SdkConnectorOptions,
    private readonly isWorker = false,
  ) {
    this.name = options.name;
  }

  async open(): Promise<void> {
    const { builder, address, database, config, name, subscribesTo } = this.options;
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
    if (subscribesTo) await this.#subscribe(subscribesTo);
  }

  /** Answers when the rows are there. */
  #subscribe(tables: readonly string[]) {
    return new Promise<ReturnType<SdkSubscriptionBuilder["subscribe"]>>((resolve, reject) => {
      const handle = this.#open
        .subscriptionBuilder()
        .onApplied(() => resolve(handle))
        .onError(({ event }) =>
          reject(new Error(`${this.name}: no subscription to ${tables.join(", ")}: ${String(event)}`)),
        )
        .subscribe(tables.map((table) => `SELECT * FROM ${table}`));
    });
  }

  async close(): Promise<void> {
    this.#connection?.disconnect();
    this.#connection = undefined;
    this.#calls.clear();
  }

  /** Workers share a connection that subscribes: there is one cache, which has what its own writes have done. */
  async createWorker(): Promise<Connector> {
    if (this.options.subscribesTo) return this;
    const worker = new SdkConnector(this.options, true);
    await worker.open();
    return worker;
  }

  get #open(): SdkConnection {
    if (!this.#connection) throw new Error(`${this.name}: not open`);
    return this.#connection;
  }

  /** A time as this SDK takes it. */
  timestamp(microseconds: bigint): unknown {
    const { Timestamp } = this.options;
    if (!Timestamp) throw new Error(`${this.name}: times are not known`);
    return new Timestamp(microseconds);
  }

  /** A table in the client's cache, by its name in the bindings. */
  cached(table: string): unknown {
    if (!this.options.subscribesTo) throw new Error(`${this.name} subscribes to nothing`);
    return (this.#open.db as Record<string, unknown>)[table];
  }

  /** Calls a reducer or a procedure, by its name in the bindings or by that of the RPC method. */
  call(name: string, args: CallArguments = {}): Promise<unknown> {
    let call = this.#calls.get(name);
    if (!call) {
      const { reducers, procedures } = this.#open as { reducers: Functions; procedures: Functions };
      call = reducers[camelCase(name)] ?? procedures[camelCase(name)];
      if (!call) return Promise.reject(new Error(`${this.name}: the module has no function ${name}`));
      this.#calls.set(name, call);
    }
    return call(args);
  }

  async getAccount(id: number): Promise<Account | null> {
    return (await this.#accounts(`accounts WHERE id = ${id}`))[0] ?? null;
  }

  async verify(): Promise<VerifyTotals> {
    const { initialBalance } = this.options.config;
    const reader = { name: this.name, isWorker: this.isWorker, initialBalance };
    return verifiedByBalances(reader, () => this.balances());
  }

  async balances(): Promise<BigInt64Array> {
    const rows = await this.#accounts();
    const balances = new BigInt64Array(rows.length);
    for (const { id, balance } of rows) balances[id] = balance;
    return balances;
  }

  /** Subscribes once, takes the rows and unsubscribes: no change is sent here while operations are measured. */
  async #accounts(what = "accounts"): Promise<Account[]> {
    const read = async () => {
      const handle = await this.#subscribe([what]);
      const { accounts } = this.#open.db as { accounts: { iter(): Iterable<Account> } };
      const rows = [...accounts.iter()].map(({ id, balance }) => ({ id, balance }));
      await new Promise<void>((done) => handle.unsubscribeThen(() => done()));
      return rows;
    };
    return withTimeout(read(), rowsMilliseconds, `${this.name}: reading ${what}`);
  }
}
