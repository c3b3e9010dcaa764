// Databases that have YCSB alone, without a server in front (section 15.5): what they share as connectors.

import { foundAt, messageOf } from "../init/addresses";
import { type YcsbStore, ycsbMethods } from "../rpc-servers/ycsb/store";
import { NotRunning } from "./connector";
import type { PrepareContext, Started } from "./definition";
import { type DirectOptions, directDefinition } from "./direct_connector";

/** A client of the database. */
export interface YcsbClient extends YcsbStore {
  /** What the database says about itself. */
  describe(): Promise<{
    version: string;
    isolation: string;
    durability: string;
    isDurable: boolean;
    warnings?: string[];
  }>;
  close(): Promise<void>;
}

export interface YcsbDatabaseOptions extends Pick<DirectOptions, "key" | "startCommand" | "isShared"> {
  /** The variable of the address of a running database. */
  urlVariable: string;
  /** The protocol that the bench process speaks, and the port where the address names none. */
  transport: string;
  defaultPort: number;
  /** Starts one where the variable is not set; left out where no package has the database. */
  start?(context: PrepareContext): Promise<Started>;
  open(...given: Parameters<DirectOptions["connect"]>): Promise<YcsbClient>;
}

async function startOrFind(options: YcsbDatabaseOptions, context: PrepareContext): Promise<Started> {
  const { urlVariable, startCommand, defaultPort, start } = options;
  const url = process.env[urlVariable];
  if (!url) {
    if (start) return start(context);
    throw new NotRunning(`${urlVariable} is not set: ${startCommand}`);
  }
  if (!URL.canParse(url)) throw new NotRunning(`${urlVariable} is no URL: ${startCommand}`);
  context.say(`using the database at ${new URL(url).hostname} (${urlVariable}); its usertable is emptied`);
  return foundAt(url, defaultPort);
}

export const ycsbDatabaseDefinition = (options: YcsbDatabaseOptions) =>
  directDefinition({
    ...options,
    columns: { transport: options.transport },
    start: (context) => startOrFind(options, context),
    failure: (error, url) =>
      new NotRunning(
        `no connection to ${new URL(url).hostname} (${options.urlVariable}): ${messageOf(error)}`,
      ),
    async connect(url, config) {
      const client = await options.open(url, config);
      const describe = async () => {
        const { version, warnings = [], ...columns } = await client.describe();
        if (config.durability === "off" && columns.isDurable) {
          warnings.push(
            `${options.key} is durable though --durability is off: its server is not this suite's to configure`,
          );
        }
        const poolMax = options.isShared ? config.poolMax : null;
        return { ...columns, warnings, poolMax, software: { database: version } };
      };
      return { methods: { ...ycsbMethods(client), describe }, close: () => client.close() };
    },
  });
