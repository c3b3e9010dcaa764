// Databases that have YCSB alone, without a server in front (section 15.5): what they share as connectors.

import { processesListeningOn } from "../core/cpu";
import type { Fairness } from "../core/result";
import type { PrivateServer } from "../init/mariadb";
import { isLocal, messageOf } from "../init/postgres_database";
import type { YcsbStore } from "../rpc-servers/ycsb_methods";
import { type Connector, NotRunning } from "./connector";
import type { ConnectorDefinition, PrepareContext, Prepared } from "./definition";

/** A client of the database. A read-modify-write is a read and an update, as stock YCSB does it (section 15.3). */
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

type OpenClient = () => Promise<YcsbClient>;

export class YcsbDatabaseConnector implements Connector {
  #client: YcsbClient | undefined;

  constructor(
    readonly name: string,
    private readonly isShared: boolean,
    private readonly openClient: OpenClient,
    private readonly root?: YcsbDatabaseConnector,
  ) {}

  get store(): YcsbStore {
    const client = this.#client ?? this.root?.store;
    if (!client) throw new Error(`${this.name}: not open`);
    return client as YcsbStore;
  }

  async open(): Promise<void> {
    this.#client = await this.openClient();
  }

  async close(): Promise<void> {
    await this.#client?.close();
    this.#client = undefined;
  }

  async createWorker(): Promise<Connector> {
    const worker = new YcsbDatabaseConnector(this.name, this.isShared, this.openClient, this);
    if (!this.isShared) await worker.open();
    return worker;
  }

  call(name: string): Promise<unknown> {
    return Promise.reject(new Error(`${this.name}: unknown method: ${name}`));
  }
}

async function prepare(options: YcsbDatabaseOptions, context: PrepareContext): Promise<Prepared> {
  const { key, urlVariable, startCommand, transport, isShared } = options;
  const { config, say } = context;
  const given = process.env[urlVariable];
  if (!given && !options.start) throw new NotRunning(`${urlVariable} is not set: ${startCommand}`);
  if (given && !URL.canParse(given)) throw new NotRunning(`${urlVariable} is no URL: ${startCommand}`);
  const started = given ? undefined : await options.start!(context);
  const url = started?.url ?? given!;
  const { hostname, port } = new URL(url);
  if (given) say(`using the database at ${hostname} (${urlVariable}); its usertable is emptied`);
  try {
    const description = await options.describe(url, context).catch((error: unknown) => {
      throw new NotRunning(`no connection to ${hostname} (${urlVariable}): ${messageOf(error)}`);
    });
    if (config.durability === "off" && description.isDurable)
      say(
        `warning: ${key} is durable though --durability is off: its server is not this suite's to configure`,
      );
    const fairness: Fairness = {
      systemClass: description.isDurable ? "database-direct" : "not-durable",
      isolation: description.isolation,
      durability: description.durability,
      poolMax: isShared ? config.poolMax : null,
      transport,
      orm: "none",
      clientLanguage: "TypeScript",
      colocated: isLocal(url),
      roundTripsPerTx: 1,
    };
    const found = () => (isLocal(url) ? processesListeningOn(Number(port || options.defaultPort)) : null);
    return {
      url,
      fairness,
      get serverProcesses() {
        return started ? started.processes : found();
      },
      ...(started && { dataDirectory: started.dataDirectory }),
      software: { database: description.version },
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
    new YcsbDatabaseConnector(options.key, options.isShared, () => options.open(url, { config })),
});
