// The module that a test needs of servers with the SpacetimeDB interface.

import type { Config } from "../config";

export interface TestModule {
  /** Its directory below `modules` without `-ts` or `-rs`, and its database. */
  name: string;
  /** It is the module of test-1, which is seeded, and which flags may exchange. */
  isTransfer?: boolean;
  /** A procedure without arguments: nothing can be done on a server that runs none. */
  needs?: string;
  /** Tables that a subscribed client keeps in its cache, to answer reads from there (section 15.5). */
  cached?: readonly string[];
}

export const transferModule: TestModule = { name: "transfer", isTransfer: true };

/** The default of `--stdb-module` is the database of test-1; another name counts for every test. */
export const databaseOf = (config: Config, name: string) =>
  config.stdbModule === "test-1" ? name : config.stdbModule;
