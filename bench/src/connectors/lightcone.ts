// This repository's SDK on both sides: its client, and a module written with its server library.

import { DbConnection } from "../../lightcone_bindings";
import type { npmBuilder } from "./npm_client";
import { socketTransport } from "./sockets";
import { sdkConnect, stdbDefinition } from "./stdb";

// Same methods; the types differ in the classes of the two packages only.
const builder = () => DbConnection.builder() as unknown as ReturnType<typeof npmBuilder>;

export const definition = stdbDefinition({
  key: "lightcone",
  module: (config) => ({ path: "../modules/transfer-ts", database: `${config.stdbModule}-lightcone` }),
  connect: sdkConnect("lightcone", builder),
  transport: socketTransport(),
  clientSoftware: "lightcone (sdk-ts of this repository)",
  moduleLanguage: "TypeScript, lightcone",
});
