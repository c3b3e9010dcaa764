// Connections by a client SDK with generated bindings: the npm package, and this repository's, which has the same interface.

import type { DbConnection } from "../../module_bindings";
import { type Config, webSocketUrl } from "../config";
import {
  type Account,
  type CallArguments,
  type Connector,
  judgeTotals,
  VerificationFailure,
  type VerifyTotals,
} from "./connector";
import { useSockets } from "./sockets";

type Builder = ReturnType<typeof DbConnection.builder>;

export interface SdkConnectorOptions {
  name: string;
  /** A fresh builder of the bindings. */
  builder: () => Builder;
  address: string;
  database: string;
  config: Config;
}

const subscribeMilliseconds = 60_000;

export class SdkConnector implements Connector {
  readonly name: string;
  #connection: DbConnection | undefined;

  constructor(
    private readonly options: SdkConnectorOptions,
    private readonly isWorker = false,
  ) {
    this.name = options.name;
  }

  async open(): Promise<void> {
    const { builder, address, database, config, name } = this.options;
    useSockets();
    this.#connection = await new Promise<DbConnection>((resolve, reject) => {
      builder()
        .withUri(webSocketUrl(address))
        .withDatabaseName(database)
        .withCompression(config.stdbCompression)
        .withConfirmedReads(config.stdbConfirmedReads)
        .onConnect((connection) => resolve(connection))
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
    const worker = new SdkConnector(this.options, true);
    await worker.open();
    return worker;
  }

  call(name: string, args: CallArguments = {}): Promise<unknown> {
    const { reducers } = this.#open();
    switch (name) {
      case "transfer":
        return reducers.transfer(args as { from: number; to: number; amount: bigint });
      case "seed":
        return reducers.seed({
          n: Number(args["accounts"]),
          initialBalance: BigInt(args["initialBalance"] as number | bigint),
        });
      default:
        return Promise.reject(new Error(`Unknown reducer: ${name}`));
    }
  }

  async getAccount(id: number): Promise<Account | null> {
    const rows = await this.#rows(`SELECT * FROM accounts WHERE id = ${id}`);
    return rows[0] ?? null;
  }

  async verify(): Promise<VerifyTotals> {
    if (this.isWorker) throw new VerificationFailure(`${this.name}: only the root connection verifies`);
    const initialBalance = this.options.config.initialBalance;
    const initial = BigInt(initialBalance);
    const totals: VerifyTotals = { accounts: 0n, total: 0n, changed: 0n };
    for (const { balance } of await this.#rows("SELECT * FROM accounts")) {
      totals.accounts++;
      totals.total += balance;
      if (balance !== initial) totals.changed++;
    }
    return judgeTotals(totals, initialBalance);
  }

  async balances(): Promise<BigInt64Array> {
    const rows = await this.#rows("SELECT * FROM accounts");
    const balances = new BigInt64Array(rows.length);
    for (const { id, balance } of rows) balances[id] = balance;
    return balances;
  }

  #open(): DbConnection {
    if (!this.#connection) throw new Error(`${this.name}: not open`);
    return this.#connection;
  }

  /** Subscribes once, takes the rows and unsubscribes: no change is sent here while operations are measured. */
  async #rows(query: string): Promise<Account[]> {
    const connection = this.#open();
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Account[]>((resolve, reject) => {
        const late = () => reject(new Error(`${this.name}: no rows within ${subscribeMilliseconds} ms`));
        timer = setTimeout(late, subscribeMilliseconds);
        const handle = connection
          .subscriptionBuilder()
          .onApplied(() => {
            const rows = [...connection.db.accounts.iter()].map(({ id, balance }) => ({ id, balance }));
            handle.unsubscribeThen(() => resolve(rows));
          })
          .onError((context) => reject(context.event ?? new Error(`${this.name}: ${query} was refused`)))
          .subscribe(query);
      });
    } finally {
      clearTimeout(timer);
    }
  }
}
