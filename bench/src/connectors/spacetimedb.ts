// The published client against any server with its interface, this repository's by default (section 10.1).

import { npmBuilder, npmClient } from "./npm_client";
import { socketTransport } from "./sockets";
import { sdkConnect, stdbDefinition } from "./stdb";

export const definition = stdbDefinition({
  key: "spacetimedb",
  module: (config) => ({ path: config.stdbModulePath, database: config.stdbModule }),
  connect: sdkConnect("spacetimedb", npmBuilder),
  transport: socketTransport(),
  clientSoftware: npmClient,
  moduleLanguage: "TypeScript, npm spacetimedb 2.10.1",
});
