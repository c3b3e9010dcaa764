// A second server beside ours, with the same client and the same module: --stdb-ref-url (section 13).

import type { Config } from "../config";
import { npmBuilder, npmClient } from "./npm_client";
import { socketTransport } from "./sockets";
import { sdkConnect, stdbDefinition } from "./stdb";

/** Where both connectors of the second server find it. */
export const referenceServer = {
  foreignServer: (config: Config) => config.stdbRefUrl,
  startCommand: "spacetime start --listen-addr 127.0.0.1:3001, with the reference's program",
};

export const definition = stdbDefinition({
  key: "spacetimedb_ref",
  module: (config) => ({ path: config.stdbModulePath, database: config.stdbModule }),
  connect: sdkConnect("spacetimedb_ref", npmBuilder),
  transport: socketTransport(),
  clientSoftware: npmClient,
  moduleLanguage: "TypeScript, npm spacetimedb 2.10.1",
  ...referenceServer,
});
