// The database of a connector of the Postgres class: the one that a variable names, or a private cluster (section 11).

import type pg from "pg";
import { type Config, UsageError } from "../config";
import { NotRunning } from "../connectors/connector";
import type { PrepareContext, Started } from "../connectors/definition";
import { openPool, withSettings } from "../rpc-servers/postgres/pool";
import { messageOf, placeOf } from "./addresses";
import { startCluster } from "./postgres_cluster";
import { findPostgres } from "./postgres_programs";
import { sleep } from "./processes";

const connectMillisecondsMax = 30_000;
const connectPauseMilliseconds = 500;

/** The settings that the flags ask for; everything else is as the database was installed. */
export function settingsOf(config: Config): Record<string, string> {
  return {
    default_transaction_isolation: config.pgIsolation.replace("-", " "),
    ...(config.durability === "off" ? { synchronous_commit: "off" } : {}),
  };
}

/** Starts a private cluster with the settings that the flags ask for. */
export async function startDatabase(context: PrepareContext): Promise<Started> {
  const { say, processes, workDirectory, config } = context;
  const programs = await findPostgres(say);
  const settings: Record<string, string> = {
    ...settingsOf(config),
    ...(config.durability === "off" ? { fsync: "off" } : {}),
    ...connectionSettings(config.poolMax),
    ...givenSettings("PG_SETTINGS"),
  };
  return startCluster({ programs, settings, processes, workDirectory, say });
}

/** What a person wants to be different in a database of the suite, e.g. `commit_delay=2000 commit_siblings=2`. */
export function givenSettings(variable: string): Record<string, string> {
  const words = (process.env[variable] ?? "").split(/\s+/).filter((word) => word !== "");
  return Object.fromEntries(
    words.map((word) => {
      const [, name, value] = /^([a-z_.]+)=(.+)$/.exec(word) ?? [];
      if (name === undefined || value === undefined) {
        throw new UsageError(`${variable} is a list of name=value, separated by blanks; ${word} is none`);
      }
      return [name, value];
    }),
  );
}

/** Connections that PostgreSQL allows as installed, and those of the suite besides the pool. */
const installedConnectionsMax = 100;
const connectionsBesidesPool = 20;

function connectionSettings(poolMax: number): Record<string, string> {
  const needed = poolMax + connectionsBesidesPool;
  return needed > installedConnectionsMax ? { max_connections: String(needed) } : {};
}

/** A database that is not the suite's; the settings go along with each connection. */
export function foundDatabase(url: string, settings: Record<string, string>): Started {
  return { url: withSettings(url, settings), processes: () => null, stop: async () => {} };
}

/** Opens a small pool, waiting up to 30 s for the database. */
export async function connectDatabase(url: string): Promise<pg.Pool> {
  if (!URL.canParse(url))
    throw new NotRunning(`the address of the database is no URL: ${JSON.stringify(url)}`);
  const pool = openPool({ url, applicationName: "lightcone-bench-prep", poolMax: 2 });
  const deadline = Date.now() + connectMillisecondsMax;
  for (;;) {
    try {
      await pool.query("SELECT 1");
      return pool;
    } catch (error) {
      if (Date.now() > deadline || !isPassing(error)) {
        await pool.end();
        throw new NotRunning(`no connection to the database at ${placeOf(url)}: ${messageOf(error)}`);
      }
      await sleep(connectPauseMilliseconds);
    }
  }
}

/** Whether waiting may help: nothing listens yet, or the database says that it is starting. */
function isPassing(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return code === "ECONNREFUSED" || code === "ECONNRESET" || code === "57P03";
}
