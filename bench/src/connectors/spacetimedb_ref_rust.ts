// The second server with the Rust module, in a database of its own.

import { npmBuilder, npmClient } from "./npm_client";
import { socketTransport } from "./sockets";
import { referenceServer } from "./spacetimedb_ref";
import { sdkConnect, stdbDefinition } from "./stdb";

export const definition = stdbDefinition({
  key: "spacetimedb_ref_rust",
  module: (config) => ({ path: "./rust_module", database: `${config.stdbModule}-rust` }),
  connect: sdkConnect("spacetimedb_ref_rust", npmBuilder),
  transport: socketTransport(),
  clientSoftware: npmClient,
  moduleLanguage: "Rust",
  ...referenceServer,
});
