// How the connectors with a client SDK are prepared for a workload: its module is published, and it loads its own data.

import { setGlobalLogLevel } from "spacetimedb";
import type { Config } from "../config";
import { type ConnectorDefinition, NotRunning } from "../connectors/connector";
import { stdbDefinition } from "../connectors/stdb";
import { WorkloadSdkConnector } from "../connectors/workload_sdk_connector";

export interface SdkDefinitionOptions {
  key: "lightcone" | "spacetimedb";
  /** The directory of the module, relative to the package, and the name of its database. */
  modulePath: string;
  database: string;
  /** A fresh builder of the bindings of this module and SDK. */
  builder: () => unknown;
  /** A procedure without arguments: nothing can be done on a server that runs none. */
  neededProcedure: string;
}

const clients = {
  lightcone: "lightcone (sdk-ts of this repository)",
  spacetimedb: "npm spacetimedb 2.10.1",
};

// One line per connection would hide everything else.
setGlobalLogLevel("error");

/** The default of `--stdb-module` is the database of test-1; another name counts for every test. */
const databaseOf = (config: Config, database: string) =>
  config.stdbModule === "test-1" ? database : config.stdbModule;

export function sdkDefinition(options: SdkDefinitionOptions): ConnectorDefinition {
  const { key, modulePath, database, builder, neededProcedure } = options;
  const connect = (config: Config, address: string, name: string) =>
    new WorkloadSdkConnector({ name: key, builder, address, database: name, config });
  const definition = stdbDefinition({
    key,
    module: (config) => ({ path: modulePath, database: databaseOf(config, database) }),
    connect,
    transport: "WebSocket",
    clientSoftware: clients[key],
    moduleLanguage: "TypeScript",
    seeds: false,
  });
  return {
    ...definition,
    async prepare(context) {
      const prepared = await definition.prepare(context);
      const connector = connect(context.config, prepared.url, databaseOf(context.config, database));
      try {
        await connector.open();
        await connector.call(neededProcedure);
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
