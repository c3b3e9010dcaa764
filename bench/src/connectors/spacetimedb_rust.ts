// The same with the Rust module, in a database of its own (section 13).

import { npmBuilder, npmClient } from "./npm_client";
import { socketTransport } from "./sockets";
import { sdkConnect, stdbDefinition } from "./stdb";

export const definition = stdbDefinition({
  key: "spacetimedb_rust",
  module: (config) => ({ path: "./rust_module", database: `${config.stdbModule}-rust` }),
  connect: sdkConnect("spacetimedb_rust", npmBuilder),
  transport: socketTransport(),
  clientSoftware: npmClient,
  moduleLanguage: "Rust",
});
