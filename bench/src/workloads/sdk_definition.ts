// How the connectors with a client SDK are prepared for a workload: its module is published, and it loads its own data.

import { setGlobalLogLevel } from "spacetimedb";
import type { Config } from "../config";
import { type ConnectorDefinition, NotRunning } from "../connectors/connector";
import { socketTransport } from "../connectors/sockets";
import { stdbDefinition } from "../connectors/stdb";
import { WorkloadSdkConnector } from "../connectors/workload_sdk_connector";

export interface SdkDefinitionOptions {
  key: keyof typeof systems;
  /** The directory of the module without `-ts` or `-rs`, which is also the name of its database. */
  module: string;
  /** A fresh builder of the bindings of this module and SDK. */
  builder: () => unknown;
  /** A procedure without arguments: nothing can be done on a server that runs none. */
  neededProcedure: string;
  /** Tables that the client keeps in its cache, to answer reads from there (section 15.5). */
  subscribesTo?: readonly string[];
}

const npmClient = "npm spacetimedb 2.10.1";

interface System {
  client: string;
  language: keyof typeof suffixes;
}

/** Their clients, and the language of their modules. */
const systems = {
  lightcone: { client: "lightcone (sdk-ts of this repository)", language: "TypeScript" },
  spacetimedb: { client: npmClient, language: "TypeScript" },
  spacetimedb_sub: { client: npmClient, language: "TypeScript" },
  spacetimedb_rust: { client: npmClient, language: "Rust" },
} satisfies Record<string, System>;

const suffixes = {
  TypeScript: { directory: "-ts", database: "" },
  Rust: { directory: "-rs", database: "-rust" },
};

// One line per connection would hide everything else.
setGlobalLogLevel("error");

/** The default of `--stdb-module` is the database of test-1; another name counts for every test. */
export const databaseOf = (config: Config, module: string) =>
  config.stdbModule === "test-1" ? module : config.stdbModule;

export function sdkDefinition(options: SdkDefinitionOptions): ConnectorDefinition {
  const { key, module, builder, neededProcedure, subscribesTo } = options;
  const { client, language }: System = systems[key];
  const suffix = suffixes[language];
  const database = (config: Config) => `${databaseOf(config, module)}${suffix.database}`;
  const connect = (config: Config, address: string, name: string) =>
    new WorkloadSdkConnector({
      name: key,
      builder,
      address,
      database: name,
      config,
      ...(subscribesTo && { subscribesTo }),
    });
  const definition = stdbDefinition({
    key,
    module: (config) => ({ path: `../modules/${module}${suffix.directory}`, database: database(config) }),
    connect,
    transport: socketTransport(),
    clientSoftware: client,
    moduleLanguage: language,
    seeds: false,
  });
  return {
    ...definition,
    async prepare(context) {
      const prepared = await definition.prepare(context);
      const connector = connect(context.config, prepared.url, database(context.config));
      try {
        await connector.open();
        await connector.call(neededProcedure);
        if (subscribesTo) {
          const transport = `${socketTransport()}, one connection for all workers; reads from the client's cache`;
          Object.assign(prepared.fairness, { systemClass: "client-cache", transport });
        }
        return prepared;
      } catch (error) {
        await prepared.stop();
        if (!String(error).includes("not supported")) throw error;
        throw new NotRunning("the server runs no procedures, which this test needs: start one that does");
      } finally {
        await connector.close();
      }
    },
  };
}
