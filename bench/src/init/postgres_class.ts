// Prepares the connectors of the Postgres class: a database, its accounts, and the RPC server in front of it. What is
// found running is used; what is not is started, where it can be.

import { join } from "node:path";
import type pg from "pg";
import type { Config } from "../config";
import type { Fairness } from "../connectors/connector";
import { NotRunning } from "../connectors/connector";
import { RpcConnector } from "../connectors/rpc/rpc_connector";
import type { IdType } from "../rpc-servers/postgres/accounts";
import type { DatabaseDescription } from "../rpc-servers/postgres/pool";
import {
  accepts,
  connectDatabase,
  type Database,
  foundDatabase,
  isLocal,
  messageOf,
  placeOf,
  seedAccounts,
  settingsOf,
  startDatabase,
} from "./postgres_database";
import type { PrepareContext, Prepared } from "./prepare";
import type { Program } from "./processes";

export const suiteDirectory = join(import.meta.dirname, "..", "..");

export interface PostgresClassOptions {
  key: string;
  /** Names of the variables of the database's address; without one of them a private cluster is started, if it may be. */
  databaseUrlVariables: string[];
  mayStartDatabase: boolean;
  /** Whether `--pg-isolation` counts for a database that was found running, or its own default. */
  asksForIsolation: boolean;
  /** Where the database is when no variable says it; it is used only if it is running. */
  databaseUrlDefault?: string;
  /** Where an RPC server of this connector may be running already. */
  rpcUrl(config: Config): string;
  /** Runs the RPC server: arguments of Node with tsx, or another program. */
  server: { name: string; command?: string; args: string[]; portVariable: string; databaseVariable: string };
  idType: IdType;
  roundTripsPerTx: number;
  orm: string;
  /** Name and version of what runs the server. */
  runtime: string;
  /** Instead of one INSERT: other databases want other preparations. */
  seed?(pool: pg.Pool, context: PrepareContext): Promise<void>;
  /** The database inside a private cluster, if not the one that is always there. */
  databaseName?: string;
}

/** What the method `describe` of our servers answers. */
type Description = DatabaseDescription & { poolMax: number };

async function describeServer(url: string, key: string): Promise<Description | undefined> {
  const connector = new RpcConnector({ name: key, url, initialBalance: 0 });
  try {
    return (await connector.call("describe")) as Description;
  } catch {
    // A server that is not ours, e.g. another implementation of the same wire format.
    return undefined;
  }
}

function fairnessOf(
  options: PostgresClassOptions,
  description: Description | undefined,
  colocated: boolean,
): Fairness {
  return {
    systemClass: description?.isDurable === false ? "not-durable" : "full-stack",
    isolation: description?.isolation ?? "unknown",
    durability: description?.durability || "unknown",
    poolMax: description?.poolMax ?? null,
    transport: "http",
    orm: options.orm,
    clientLanguage: "typescript",
    colocated,
    roundTripsPerTx: options.roundTripsPerTx,
  };
}

function softwareOf(
  options: PostgresClassOptions,
  description: Description | undefined,
): Record<string, string> {
  const roundTrip = description && `${description.roundTripMilliseconds} ms`;
  return {
    server: options.runtime,
    ...(description ? { database: description.version, databaseRoundTrip: roundTrip! } : {}),
  };
}

/** An RPC server that runs already, as `services start` or a person started it; undefined if none answers. */
async function prepareFound(
  context: PrepareContext,
  options: PostgresClassOptions,
): Promise<Prepared | undefined> {
  const { config, say } = context;
  const url = options.rpcUrl(config);
  const connector = new RpcConnector({ name: options.key, url, initialBalance: config.initialBalance });
  try {
    await connector.open();
  } catch (error) {
    if (config.prep && isLocal(url)) return undefined;
    throw new NotRunning(`no RPC server at ${url}: ${messageOf(error)}`);
  }
  const reseed = async () => {
    await connector.call("seed", { accounts: config.accounts, initialBalance: config.initialBalance });
  };
  say(`using the RPC server that runs at ${url}`);
  if (config.prep) await reseed();
  const description = await describeServer(url, options.key);
  return {
    url,
    fairness: fairnessOf(options, description, isLocal(url)),
    serverProcesses: null,
    software: softwareOf(options, description),
    reseed,
    stop: async () => {},
  };
}

async function chooseDatabase(context: PrepareContext, options: PostgresClassOptions): Promise<Database> {
  const name = options.databaseUrlVariables.find((variable) => process.env[variable]);
  if (name !== undefined) {
    const url = process.env[name]!;
    context.say(`using the database at ${placeOf(url)} (${name}); its table accounts is emptied`);
    return foundDatabase(url, options.asksForIsolation ? settingsOf(context.config) : {});
  }
  const usual = options.databaseUrlDefault;
  if (usual !== undefined && (await accepts(usual))) return foundDatabase(usual, {});
  if (!options.mayStartDatabase) {
    const where = usual === undefined ? "" : ` and nothing listens at ${placeOf(usual)}`;
    throw new NotRunning(`${options.databaseUrlVariables.join(" or ")} is not set${where}`);
  }
  const database = await startDatabase(context);
  if (options.databaseName === undefined) return database;
  const pool = await connectDatabase(database.url);
  await pool.query(`CREATE DATABASE ${options.databaseName}`);
  await pool.end();
  const url = new URL(database.url);
  url.pathname = `/${options.databaseName}`;
  return { ...database, url: url.href };
}

async function startServer(
  context: PrepareContext,
  options: PostgresClassOptions,
  url: string,
): Promise<Program> {
  const { server } = options;
  const program = await context.processes.start({
    name: server.name,
    command: server.command ?? process.execPath,
    args: server.args,
    environment: {
      [server.databaseVariable]: url,
      // A free port: somebody else may have the documented one.
      [server.portVariable]: "0",
      MAX_POOL: String(context.config.poolMax),
      SEED_ACCOUNTS: String(context.config.accounts),
      SEED_INITIAL_BALANCE: String(context.config.initialBalance),
    },
    workingDirectory: suiteDirectory,
    logFile: join(context.workDirectory, `${options.key}.log`),
    readyWhen: /listening on (http:\S+)/,
  });
  context.say(`${server.name} at ${program.ready}`);
  return program;
}

export async function preparePostgresClass(
  context: PrepareContext,
  options: PostgresClassOptions,
): Promise<Prepared> {
  const { config, say } = context;
  const found = await prepareFound(context, options);
  if (found) return found;

  const database = await chooseDatabase(context, options);
  let pool: pg.Pool | undefined;
  let program: Program | undefined;
  const stop = async () => {
    await program?.stop();
    await pool?.end();
    pool = undefined;
    await database.stop();
  };
  try {
    const opened = await connectDatabase(database.url);
    pool = opened;
    const reseed = async () => {
      say(`seeding ${config.accounts} accounts`);
      if (options.seed) await options.seed(opened, context);
      else await seedAccounts(opened, options.idType, config.accounts, config.initialBalance);
    };
    await reseed();
    program = await startServer(context, options, database.url);
    const url = program.ready;
    const description = await describeServer(url, options.key);
    const { cluster } = database;
    const { pid } = program;
    return {
      url,
      fairness: fairnessOf(options, description, cluster !== undefined || isLocal(database.url)),
      // Read anew each time: after a crash the database is another process.
      get serverProcesses() {
        return cluster ? [cluster.pid(), pid] : null;
      },
      software: softwareOf(options, description),
      ...(cluster ? { dataDirectory: join(cluster.directory, "data"), crash: () => cluster.crash() } : {}),
      reseed,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The arguments of Node that run one of the servers in `src/rpc-servers/`. */
export const nodeServerArguments = (file: string): string[] => [
  "--import",
  "tsx",
  join(suiteDirectory, "src", "rpc-servers", file),
];
