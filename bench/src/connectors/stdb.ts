// What the connectors of servers with the SpacetimeDB interface share: they get the server, the module and the seed.

import { type Config, webSocketUrl } from "../config";
import type { SystemClass } from "../core/result";
import { orStopped } from "../init/processes";
import {
  defaultAddress,
  foundServer,
  hasDatabase,
  type Module,
  pings,
  publishModule,
  type StdbServer,
  startServer,
} from "../init/stdb_server";
import { type Connector, NotRunning } from "./connector";
import { type ConnectorDefinition, fairnessOf, type NativeTarget, type PrepareContext } from "./definition";

export interface StdbConnectorOptions {
  key: string;
  /** The database and where its module comes from. */
  module: (config: Config) => Module;
  connect: (config: Config, address: string, database: string) => Connector;
  transport: string;
  clientSoftware: string;
  moduleLanguage: string;
  /** The server that must run already, e.g. a second one for comparison; without it this repository's is started. */
  foreignServer?: (config: Config) => string;
  startCommand?: string;
  /** Whether the module has the reducer `seed` of test-1; other workloads load their data themselves. */
  seeds?: boolean;
  /** What of a result is on disk before it is answered, where the protocol does not let the client choose. */
  durability?: (server: StdbServer) => string;
  systemClass?: SystemClass;
  /** Whether the server has what the test needs; gets a connection that is not open, and rejects if it has not. */
  check?: (connector: Connector) => Promise<void>;
  /** How the native load generator calls; by the client protocol if left out. */
  nativeKind?: NativeTarget["kind"];
}

export function stdbDefinition(options: StdbConnectorOptions): ConnectorDefinition {
  const { key } = options;
  const startCommand = options.startCommand ?? "spacetime start";

  /** A server that runs already. */
  const foundAt = async (address: string): Promise<StdbServer> => {
    if (await pings(address)) return foundServer(address);
    throw new NotRunning(`no server at ${address}: start it with \`${startCommand}\``);
  };
  const serverFor = async (context: PrepareContext): Promise<StdbServer> => {
    const { config } = context;
    if (options.foreignServer) return foundAt(options.foreignServer(config));
    if (config.stdbUrlGiven) return foundAt(config.stdbUrl);
    if (context.programs !== undefined) return startServer(context);
    if (!config.prep && !context.asService) return foundAt(defaultAddress);
    // `prep` or a person has started one, for this test if it has the database.
    const { database } = options.module(config);
    const isThere = await pings(defaultAddress);
    const isUsed = isThere && (context.asService || (await hasDatabase(defaultAddress, database)));
    return isUsed ? foundServer(defaultAddress) : startServer(context);
  };

  return {
    key,
    startCommand,
    create: (config, prepared) => options.connect(config, prepared.url, options.module(config).database),
    nativeTarget: (config, prepared) => ({
      kind: options.nativeKind ?? "websocket",
      url: webSocketUrl(prepared.url),
      arguments: [
        ...["--database", options.module(config).database],
        ...["--confirmed", String(config.stdbConfirmedReads)],
      ],
    }),
    prepare: async (context) => {
      const { config, say } = context;
      const server = await serverFor(context);
      const module = options.module(config);
      const seed = async () => {
        if (options.seeds === false) return;
        say(`seeding ${config.accounts} accounts`);
        const root = options.connect(config, server.url, module.database);
        await root.open();
        await root.call("seed", { n: config.accounts, initialBalance: BigInt(config.initialBalance) });
        await root.close();
      };
      await orStopped(server, async () => {
        const isMissing = config.prep && !(await hasDatabase(server.url, module.database));
        if (server.isOurs || context.asService || isMissing) {
          await publishModule(context, server.url, module);
          await seed();
        } else if (!(await hasDatabase(server.url, module.database))) {
          throw new NotRunning(
            `no database ${module.database} at ${server.url}: \`pnpm run prep\` publishes it`,
          );
        } else {
          say(`using the database ${module.database} at ${server.url} as it is`);
        }
        await options.check?.(options.connect(config, server.url, module.database));
      });
      return {
        ...server,
        fairness: fairnessOf({
          ...(options.systemClass && { systemClass: options.systemClass }),
          isolation: "serializable",
          durability: options.durability?.(server) ?? confirmation(config),
          transport: options.transport,
          orm: "none: tables of the module",
          colocated: server.processes() !== null,
        }),
        software: {
          ...server.software,
          client: options.clientSoftware,
          module: `${module.path} (${options.moduleLanguage})`,
        },
        reseed: seed,
      };
    },
  };
}

const confirmation = ({ stdbConfirmedReads }: Config) =>
  stdbConfirmedReads ? "synced before the answer (group commit)" : "not waited for";

/** Over HTTP there is no switch: what a server does, it does for all (section 13). */
export const httpDurability = (server: StdbServer): string =>
  server.isOurs
    ? "synced before the answer (group commit)"
    : "unconfirmed unless the server holds HTTP answers";
