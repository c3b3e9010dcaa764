// The database of a connector of the Postgres class: the one that a variable names, or a private cluster; made ready and
// filled with accounts (section 11).

import { connect } from "node:net";
import type pg from "pg";
import { type Config, UsageError } from "../config";
import { NotRunning } from "../connectors/connector";
import type { PrepareContext } from "../connectors/definition";
import type { IdType } from "../rpc-servers/postgres/accounts";
import { openPool, withSettings } from "../rpc-servers/postgres/pool";
import { type PostgresCluster, startCluster } from "./postgres_cluster";
import { findPostgres } from "./postgres_programs";
import { sleep } from "./processes";

const connectMillisecondsMax = 30_000;
const acceptMillisecondsMax = 2_000;
const connectPauseMilliseconds = 500;

export interface Database {
  url: string;
  /** Undefined where the database was found running. */
  cluster: PostgresCluster | undefined;
  stop(): Promise<void>;
}

/** The settings that the flags ask for; everything else is as the database was installed. */
export function settingsOf(config: Config): Record<string, string> {
  return {
    default_transaction_isolation: config.pgIsolation.replace("-", " "),
    ...(config.durability === "off" ? { synchronous_commit: "off" } : {}),
  };
}

/** Starts a private cluster with the settings that the flags ask for. */
export async function startDatabase(context: PrepareContext): Promise<Database> {
  const { say, processes, workDirectory, config } = context;
  const programs = await findPostgres(say);
  const settings: Record<string, string> = {
    ...settingsOf(config),
    ...(config.durability === "off" ? { fsync: "off" } : {}),
    ...connectionSettings(config.poolMax),
    ...givenSettings("PG_SETTINGS"),
  };
  const cluster = await startCluster({ programs, settings, processes, workDirectory, say });
  return { url: cluster.url, cluster, stop: () => cluster.stop() };
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

/** A database that somebody else runs; the settings go along with each connection. */
export function foundDatabase(url: string, settings: Record<string, string>): Database {
  return { url: withSettings(url, settings), cluster: undefined, stop: async () => {} };
}

/** Where a database is, without its password. */
export function placeOf(url: string): string {
  if (!URL.canParse(url)) return "an address that is no URL";
  const { hostname, port, pathname } = new URL(url);
  return `${hostname}:${port || 5432}${pathname}`;
}

/** Whether an address is one of this machine's own. */
export function isLocal(url: string): boolean {
  if (!URL.canParse(url)) return false;
  return ["127.0.0.1", "localhost", "[::1]", "::1"].includes(new URL(url).hostname);
}

/** Whether somebody listens where a database is said to be. */
export function accepts(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port || 5432), timeout: acceptMillisecondsMax });
    const answer = (isListening: boolean) => () => {
      socket.destroy();
      resolve(isListening);
    };
    socket.once("connect", answer(true));
    socket.once("error", answer(false));
    socket.once("timeout", answer(false));
  });
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

/** Whether waiting may help: nobody listens yet, or the database says that it is starting. */
function isPassing(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return code === "ECONNREFUSED" || code === "ECONNRESET" || code === "57P03";
}

/** What an error says; several addresses tried in vain are told one by one. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  if (error instanceof Error && error.cause instanceof Error) return messageOf(error.cause);
  return error instanceof Error ? error.message : String(error);
}

/** Makes the table if it is missing and fills it anew, with one INSERT. */
export async function seedAccounts(
  pool: pg.Pool,
  idType: IdType,
  accounts: number,
  initialBalance: number,
): Promise<void> {
  await pool.query(`CREATE TABLE IF NOT EXISTS accounts (id ${idType} PRIMARY KEY, balance bigint NOT NULL)`);
  await pool.query("TRUNCATE accounts");
  if (accounts === 0) return;
  await pool.query(
    "INSERT INTO accounts (id, balance) SELECT id, $2::bigint FROM generate_series(0, $1::int - 1) AS ids (id)",
    [accounts, initialBalance],
  );
}
