// The connectors with a client SDK (sections 10.1 and 13): whose client, which module, which server.

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setGlobalLogLevel } from "spacetimedb";
import type { Config } from "../config";
import { packageDirectory } from "../init/commands";
import type { Module } from "../init/stdb_server";
import { type Connector, NotRunning } from "./connector";
import type { ConnectorDefinition } from "./definition";
import { SdkConnector } from "./sdk_connector";
import { socketTransport } from "./sockets";
import { type StdbConnectorOptions, stdbDefinition } from "./stdb";
import { databaseOf, type TestModule, transferModule } from "./test_module";

interface Client {
  package: "lightcone" | "spacetimedb";
  software: string;
  /** Behind the language of the module of test-1, which is written with it. */
  library: string;
  /** Its bindings for the module of test-1, and the suffix of those for the others. */
  bindings: string;
  suffix: string;
}

const lightcone: Client = {
  package: "lightcone",
  software: "lightcone (sdk-ts of this repository)",
  library: "lightcone",
  bindings: "lightcone_bindings",
  suffix: "lightcone",
};

const npm: Client = {
  package: "spacetimedb",
  software: "npm spacetimedb 2.10.1",
  library: "npm spacetimedb 2.10.1",
  bindings: "module_bindings",
  suffix: "spacetimedb",
};

interface SdkSystem {
  client: Client;
  language: "TypeScript" | "Rust";
  /** A second server beside ours (`--stdb-ref-url`). */
  isReference?: boolean;
  /** Reads are answered from the client's cache. */
  isCached?: boolean;
}

export const sdkSystems = {
  lightcone: { client: lightcone, language: "TypeScript" },
  spacetimedb: { client: npm, language: "TypeScript" },
  spacetimedb_rust: { client: npm, language: "Rust" },
  spacetimedb_ref: { client: npm, language: "TypeScript", isReference: true },
  spacetimedb_ref_rust: { client: npm, language: "Rust", isReference: true },
  spacetimedb_sub: { client: npm, language: "TypeScript", isCached: true },
} satisfies Record<string, SdkSystem>;

// One line per connection would hide everything else.
setGlobalLogLevel("error");

/** A function that makes fresh builders of the generated bindings of a module. */
async function builderOf(client: Client, module: TestModule): Promise<() => unknown> {
  const directory = module.isTransfer ? client.bindings : `bindings/${module.name}-${client.suffix}`;
  const { href } = pathToFileURL(join(packageDirectory, directory, "index.ts"));
  const { DbConnection } = (await import(href)) as { DbConnection: { builder(): unknown } };
  return () => DbConnection.builder();
}

/** The published client reads the accounts for connectors that speak something else. */
export const npmTransferBuilder = () => builderOf(npm, transferModule);

/** The modules of test-1 may be others (`--stdb-module-path`); its clients in Rust have databases of their own. */
function placeOf(system: SdkSystem, module: TestModule, config: Config): Module {
  const isRust = system.language === "Rust";
  if (!module.isTransfer) {
    const database = `${databaseOf(config, module.name)}${isRust ? "-rust" : ""}`;
    return { path: `../modules/${module.name}${isRust ? "-rs" : "-ts"}`, database };
  }
  if (isRust) return { path: "./rust_module", database: `${config.stdbModule}-rust` };
  if (system.client === npm) return { path: config.stdbModulePath, database: config.stdbModule };
  return { path: "../modules/transfer-ts", database: `${config.stdbModule}-lightcone` };
}

/** The server that must run already for the connectors of a second one. */
const reference: Pick<StdbConnectorOptions, "foreignServer" | "startCommand"> = {
  foreignServer: (config) => config.stdbRefUrl,
  startCommand: "spacetime start --listen-addr 127.0.0.1:3001, with the reference's program",
};

export async function sdkDefinition(
  key: keyof typeof sdkSystems,
  module: TestModule,
): Promise<ConnectorDefinition> {
  const system: SdkSystem = sdkSystems[key];
  const { client, language } = system;
  const subscribesTo = system.isCached ? module.cached : undefined;
  const builder = await builderOf(client, module);
  const { Timestamp } = (await import(client.package)) as Pick<typeof import("spacetimedb"), "Timestamp">;
  const connect = (config: Config, address: string, database: string) =>
    new SdkConnector({ name: key, builder, address, database, config, subscribesTo, Timestamp });
  const { needs } = module;
  const shared = ", one connection for all workers; reads from the client's cache";
  return stdbDefinition({
    key,
    module: (config) => placeOf(system, module, config),
    connect,
    transport: socketTransport() + (subscribesTo ? shared : ""),
    clientSoftware: client.software,
    moduleLanguage: module.isTransfer && language !== "Rust" ? `${language}, ${client.library}` : language,
    seeds: module.isTransfer ?? false,
    ...(system.isReference && reference),
    ...(subscribesTo && { systemClass: "client-cache" }),
    ...(needs !== undefined && { check: (connector) => runsProcedures(connector, needs) }),
  });
}

async function runsProcedures(connector: Connector, needs: string): Promise<void> {
  try {
    await connector.open();
    await connector.call(needs);
  } catch (error) {
    if (!String(error).includes("not supported")) throw error;
    throw new NotRunning("the server runs no procedures, which this test needs: start one that does");
  } finally {
    await connector.close();
  }
}
