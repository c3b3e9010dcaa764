// The connection pool of everything that speaks to PostgreSQL or one of its relatives, and what the database says
// about itself.

import pg from "pg";

export interface PoolOptions {
  url: string;
  /** How the program calls itself in `pg_stat_activity`. */
  applicationName: string;
  poolMax: number;
}

/** TLS without a look at certificates, for PlanetScale's addresses (section 11). */
const needsLooseTls = (url: string) => url.includes("psdb.cloud");

export function openPool({ url, applicationName, poolMax }: PoolOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: applicationName,
    max: poolMax,
    ...(needsLooseTls(url) ? { ssl: { rejectUnauthorized: false } } : {}),
  });
  // The pool replaces a connection that broke while it was idle; without a listener the break would end the process.
  pool.on("error", (error) => {
    if (!pool.ending) console.warn(`[${applicationName}] idle connection lost: ${error.message}`);
  });
  // One that breaks while it is used fails its query, and says so once more: to this listener alone.
  pool.on("connect", (client) => {
    client.on("error", () => undefined);
  });
  return pool;
}

/** The same address with settings that every connection starts with. */
export function withSettings(url: string, settings: Record<string, string>): string {
  if (Object.keys(settings).length === 0) return url;
  const address = new URL(url);
  const options = Object.entries(settings).map(
    ([name, value]) => `-c ${name}=${value.replaceAll(" ", "\\ ")}`,
  );
  const given = address.searchParams.get("options");
  address.searchParams.set("options", [...(given ? [given] : []), ...options].join(" "));
  return address.href;
}

/** What a database says about itself, for the columns isolation and durability. */
export interface DatabaseDescription {
  version: string;
  isolation: string;
  /** Settings as `name=value`, those that the database knows. */
  durability: string;
  isDurable: boolean;
  /** Median of a few empty queries. */
  roundTripMilliseconds: number;
}

const roundTripSamples = 9;
const durabilitySettings = ["synchronous_commit", "fsync", "commit_delay"];

/** Undefined where the database does not know the setting: CockroachDB knows fewer. */
async function setting(client: pg.PoolClient, name: string): Promise<string | undefined> {
  try {
    const { rows } = await client.query<Record<string, string>>(`SHOW ${name}`);
    return Object.values(rows[0] ?? {})[0];
  } catch {
    return undefined;
  }
}

async function medianRoundTrip(client: pg.PoolClient): Promise<number> {
  const times: number[] = [];
  for (let sample = 0; sample < roundTripSamples; sample += 1) {
    const start = performance.now();
    await client.query("SELECT 1");
    times.push(performance.now() - start);
  }
  times.sort((left, right) => left - right);
  return Math.round(times[roundTripSamples >> 1]! * 1000) / 1000;
}

export async function describeDatabase(pool: pg.Pool): Promise<DatabaseDescription> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<{ version: string }>("SELECT version() AS version");
    const durability: string[] = [];
    for (const name of durabilitySettings) {
      const value = await setting(client, name);
      if (value !== undefined) durability.push(`${name}=${value}`);
    }
    return {
      version: (rows[0]?.version ?? "unknown").split(" on ")[0]!,
      isolation: (await setting(client, "transaction_isolation")) ?? "unknown",
      durability: durability.join(" "),
      isDurable: !durability.includes("fsync=off") && !durability.includes("synchronous_commit=off"),
      roundTripMilliseconds: await medianRoundTrip(client),
    };
  } finally {
    client.release();
  }
}
