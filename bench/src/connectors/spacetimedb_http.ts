// Reducer calls over HTTP: the same transport as the rows of the RPC servers (section 13).

import { type Config, httpUrl } from "../config";
import { type CallArguments, type Connector, Refused, type VerifyTotals } from "./connector";
import { httpSoftware, httpTransport, sendHttp } from "./http_client";
import { npmTransferBuilder } from "./sdk";
import { SdkConnector } from "./sdk_connector";
import { httpDurability, stdbDefinition } from "./stdb";

class HttpConnector implements Connector {
  readonly name = "spacetimedb_http";
  readonly #callUrl: string;
  #headers: Record<string, string> = { "content-type": "application/json" };

  constructor(
    private readonly config: Config,
    private readonly address: string,
    private readonly database: string,
    headers?: Record<string, string>,
  ) {
    this.#callUrl = `${httpUrl(address)}/v1/database/${encodeURIComponent(database)}/call`;
    if (headers) this.#headers = headers;
  }

  /** One identity for all workers: a call without one would make a new identity each time. */
  async open(): Promise<void> {
    const response = await fetch(`${httpUrl(this.address)}/v1/identity`, { method: "POST" });
    const text = await response.text();
    if (!response.ok)
      throw new Error(`${this.name}: no identity from ${this.address}: HTTP ${response.status} ${text}`);
    const { token } = JSON.parse(text) as { token: string };
    this.#headers = { ...this.#headers, authorization: `Bearer ${token}` };
  }

  async close(): Promise<void> {}

  async createWorker(): Promise<Connector> {
    return new HttpConnector(this.config, this.address, this.database, this.#headers);
  }

  async call(name: string, args: CallArguments = {}): Promise<unknown> {
    const values =
      name === "seed"
        ? [Number(args["n"]), Number(args["initialBalance"])]
        : [Number(args["from"]), Number(args["to"]), Number(args["amount"])];
    const { ok, status, text } = await sendHttp(`${this.#callUrl}/${name}`, {
      method: "POST",
      headers: this.#headers,
      body: JSON.stringify(values),
    });
    if (!ok) throw new Refused(`${this.name}: ${name}: HTTP ${status} ${text.slice(0, 200)}`);
    return undefined;
  }

  // Reading all rows is no part of what is measured: a WebSocket does it.
  async #reading<T>(read: (reader: SdkConnector) => Promise<T>): Promise<T> {
    const { address, database, config, name } = this;
    const builder = await npmTransferBuilder();
    const reader = new SdkConnector({ name, builder, address, database, config });
    await reader.open();
    try {
      return await read(reader);
    } finally {
      await reader.close();
    }
  }

  getAccount(id: number) {
    return this.#reading((reader) => reader.getAccount(id));
  }

  verify(): Promise<VerifyTotals> {
    return this.#reading((reader) => reader.verify());
  }

  balances(): Promise<BigInt64Array> {
    return this.#reading((reader) => reader.balances());
  }
}

export const definition = stdbDefinition({
  key: "spacetimedb_http",
  module: (config) => ({ path: config.stdbModulePath, database: config.stdbModule }),
  connect: (config, address, database) => new HttpConnector(config, address, database),
  transport: httpTransport(),
  clientSoftware: httpSoftware(),
  moduleLanguage: "TypeScript, npm spacetimedb 2.10.1",
  durability: httpDurability,
  nativeKind: "spacetime-http",
});
