// How the connectors with a client SDK are prepared for a workload: its module is published, and it loads its own data.

import type { Config } from "../config";
import type { ConnectorDefinition } from "../connectors/connector";
import { stdbDefinition } from "../connectors/stdb";
import { WorkloadSdkConnector } from "../connectors/workload_sdk_connector";

export interface SdkDefinitionOptions {
  key: "lightcone" | "spacetimedb";
  /** The directory of the module, relative to the package, and the name of its database. */
  modulePath: string;
  database: string;
  /** A fresh builder of the bindings of this module and SDK. */
  builder: () => unknown;
}

const clients = {
  lightcone: "lightcone (sdk-ts of this repository)",
  spacetimedb: "npm spacetimedb 2.10.1",
};

/** The default of `--stdb-module` is the database of test-1; another name counts for every test. */
const databaseOf = (config: Config, database: string) =>
  config.stdbModule === "test-1" ? database : config.stdbModule;

export function sdkDefinition(options: SdkDefinitionOptions): ConnectorDefinition {
  const { key, modulePath, database, builder } = options;
  return stdbDefinition({
    key,
    module: (config) => ({ path: modulePath, database: databaseOf(config, database) }),
    connect: (config, address, name) =>
      new WorkloadSdkConnector({ name: key, builder, address, database: name, config }),
    transport: "WebSocket",
    clientSoftware: clients[key],
    moduleLanguage: "TypeScript",
    seeds: false,
  });
}
