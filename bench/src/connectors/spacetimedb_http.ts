// Reducer calls over HTTP: the same transport as the rows of the RPC servers (section 13).

import { type Config, httpUrl } from "../config";
import { type Connector, Refused } from "./connector";
import { httpSoftware, httpTransport, sendHttp } from "./http_client";
import { npmTransferBuilder } from "./sdk";
import { SdkConnector } from "./sdk_connector";
import { httpDurability, stdbDefinition } from "./stdb";

const name = "spacetimedb_http";

function connection(
  config: Config,
  address: string,
  database: string,
  headers: Record<string, string> = { "content-type": "application/json" },
): Connector {
  const callUrl = `${httpUrl(address)}/v1/database/${encodeURIComponent(database)}/call`;
  // Reading all rows is no part of what is measured: a WebSocket does it.
  const reading = async <T>(read: (reader: SdkConnector) => Promise<T>): Promise<T> => {
    const builder = await npmTransferBuilder();
    const reader = new SdkConnector({ name, builder, address, database, config });
    await reader.open();
    try {
      return await read(reader);
    } finally {
      await reader.close();
    }
  };
  return {
    name,
    /** One identity for all workers: a call without one would make a new identity each time. */
    async open() {
      const response = await fetch(`${httpUrl(address)}/v1/identity`, { method: "POST" });
      const text = await response.text();
      if (!response.ok)
        throw new Error(`${name}: no identity from ${address}: HTTP ${response.status} ${text}`);
      const { token } = JSON.parse(text) as { token: string };
      headers = { ...headers, authorization: `Bearer ${token}` };
    },
    close: async () => {},
    createWorker: async () => connection(config, address, database, headers),
    async call(reducer, args = {}) {
      const names = reducer === "seed" ? ["n", "initialBalance"] : ["from", "to", "amount"];
      const { ok, status, text } = await sendHttp(`${callUrl}/${reducer}`, {
        ...{ method: "POST", headers },
        body: JSON.stringify(names.map((argument) => Number(args[argument]))),
      });
      if (!ok) throw new Refused(`${name}: ${reducer}: HTTP ${status} ${text.slice(0, 200)}`);
      return undefined;
    },
    getAccount: (id) => reading((reader) => reader.getAccount(id)),
    verify: () => reading((reader) => reader.verify()),
    balances: () => reading((reader) => reader.balances()),
  };
}

export const definition = stdbDefinition({
  key: name,
  module: (config) => ({ path: config.stdbModulePath, database: config.stdbModule }),
  connect: (config, address, database) => connection(config, address, database),
  transport: httpTransport(),
  clientSoftware: httpSoftware(),
  moduleLanguage: "TypeScript, npm spacetimedb 2.10.1",
  durability: httpDurability,
  nativeKind: "spacetime-http",
});
