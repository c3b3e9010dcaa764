// What the RPC servers of the Postgres class run on: a database that a variable names, or a private cluster.

import type pg from "pg";
import { NotRunning } from "../connectors/connector";
import type { PrepareContext, Started } from "../connectors/definition";
import { accepts } from "../core/tcp";
import { placeOf } from "./addresses";
import type { Back } from "./backing";
import { connectDatabase, foundDatabase, settingsOf, startDatabase } from "./postgres_database";
import { orStopped } from "./processes";

export interface PostgresBackingOptions {
  /** Names of the variables of the database's address; without one of them a private cluster is started, if it may be. */
  urlVariables: string[];
  /** Where the database is when no variable says it; it is used only if it is running. */
  urlDefault?: string;
  mayStart: boolean;
  /** What a person has to do where the suite may not. */
  startCommand: string;
  /** The variable that the RPC server takes the address from. */
  serverVariable: string;
  /** Whether `--pg-isolation` counts for a database that was found running, or its own default. */
  asksForIsolation: boolean;
  /** The database inside a private cluster, if not the one that is always there. */
  databaseName?: string;
  /** What the database needs besides the table, which the RPC server makes. */
  make?(pool: pg.Pool, context: PrepareContext): Promise<void>;
}

const isListening = (url: string) => {
  const { hostname, port } = new URL(url);
  return accepts(hostname, Number(port || 5432));
};

async function chooseDatabase(context: PrepareContext, options: PostgresBackingOptions): Promise<Started> {
  const name = options.urlVariables.find((variable) => process.env[variable]);
  if (name !== undefined) {
    const url = process.env[name]!;
    context.say(`using the database at ${placeOf(url)} (${name}); its tables of this test are emptied`);
    return foundDatabase(url, options.asksForIsolation ? settingsOf(context.config) : {});
  }
  const usual = options.urlDefault;
  if (usual !== undefined && (await isListening(usual))) return foundDatabase(usual, {});
  if (!options.mayStart) {
    const where = usual === undefined ? "" : ` and nothing listens at ${placeOf(usual)}`;
    throw new NotRunning(`${options.urlVariables.join(" or ")} is not set${where}: ${options.startCommand}`);
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

/** For `back` of an RPC definition. */
export const postgresBacking =
  (options: PostgresBackingOptions): Back =>
  async (context) => {
    const { url, ...database } = await chooseDatabase(context, options);
    await orStopped(database, async () => {
      const pool = await connectDatabase(url);
      await (options.make?.(pool, context) ?? Promise.resolve()).finally(() => pool.end());
    });
    return { ...database, environment: { [options.serverVariable]: url } };
  };

/** The database of `PG_URL`, or a private cluster. */
export const ownPostgres = (startCommand = "start a PostgreSQL and set PG_URL=<its address>") =>
  postgresBacking({
    urlVariables: ["PG_URL"],
    mayStart: true,
    startCommand,
    serverVariable: "PG_URL",
    asksForIsolation: true,
  });
