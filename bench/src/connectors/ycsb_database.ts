// Databases that have YCSB alone, without a server in front (section 15.5): what they share as connectors.

import { isLocal, messageOf, processesAt } from "../init/addresses";
import type { PrivateServer } from "../init/private_server";
import { type YcsbStore, ycsbMethods } from "../rpc-servers/ycsb/store";
import { NotRunning } from "./connector";
import { type ConnectorDefinition, fairnessOf, type PrepareContext, type Prepared } from "./definition";
import { DirectConnector } from "./direct_connector";

/** A client of the database. */
export interface YcsbClient extends YcsbStore {
  close(): Promise<void>;
}

/** What the database says about itself. */
export interface YcsbDatabaseDescription {
  version: string;
  isolation: string;
  durability: string;
  isDurable: boolean;
}

export interface YcsbDatabaseOptions {
  key: string;
  /** The variable of the address of a running database. */
  urlVariable: string;
  /** The protocol that the bench process speaks, and the port where the address names none. */
  transport: string;
  defaultPort: number;
  /** What a person has to do where nothing is running. */
  startCommand: string;
  /** Starts one where the variable is not set; left out where no package has the database. */
  start?(context: PrepareContext): Promise<PrivateServer>;
  /** Workers have a pool together, or each a connection of its own. */
  isShared: boolean;
  open(url: string, context: Pick<PrepareContext, "config">): Promise<YcsbClient>;
  describe(url: string, context: PrepareContext): Promise<YcsbDatabaseDescription>;
}

async function prepare(options: YcsbDatabaseOptions, context: PrepareContext): Promise<Prepared> {
  const { key, urlVariable, startCommand, transport, isShared } = options;
  const { config, say } = context;
  const given = process.env[urlVariable];
  if (!given && !options.start) throw new NotRunning(`${urlVariable} is not set: ${startCommand}`);
  if (given && !URL.canParse(given)) throw new NotRunning(`${urlVariable} is no URL: ${startCommand}`);
  const started = given ? undefined : await options.start!(context);
  const url = started?.url ?? given!;
  const { hostname } = new URL(url);
  if (given) say(`using the database at ${hostname} (${urlVariable}); its usertable is emptied`);
  try {
    const { version, isDurable, ...columns } = await options
      .describe(url, context)
      .catch((error: unknown) => {
        throw new NotRunning(`no connection to ${hostname} (${urlVariable}): ${messageOf(error)}`);
      });
    if (config.durability === "off" && isDurable)
      say(
        `warning: ${key} is durable though --durability is off: its server is not this suite's to configure`,
      );
    return {
      url,
      fairness: fairnessOf({
        ...columns,
        systemClass: isDurable ? "database-direct" : "not-durable",
        poolMax: isShared ? config.poolMax : null,
        transport,
        colocated: isLocal(url),
      }),
      get serverProcesses() {
        return started ? started.processes : processesAt(url, options.defaultPort);
      },
      ...(started && { dataDirectory: started.dataDirectory }),
      software: { database: version },
      stop: async () => started?.stop(),
    };
  } catch (error) {
    await started?.stop();
    throw error;
  }
}

export const ycsbDatabaseDefinition = (options: YcsbDatabaseOptions): ConnectorDefinition => ({
  key: options.key,
  startCommand: options.startCommand,
  prepare: (context) => prepare(options, context),
  create: (config, { url }) =>
    new DirectConnector({
      name: options.key,
      initialBalance: config.initialBalance,
      isShared: options.isShared,
      async connect() {
        const client = await options.open(url, { config });
        return { methods: ycsbMethods(client), close: () => client.close() };
      },
    }),
});
