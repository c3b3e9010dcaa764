// The job queue in PostgreSQL (section 17.2): workers skip the rows that others have locked.

import type pg from "pg";
import { type RetryCounter, withRetries } from "../postgres/retry";
import { type FetchedJob, type JobStore, jobKind, jobPayload, jobStates } from "./store";

const createTable = `
CREATE TABLE IF NOT EXISTS jobs (
  id bigserial PRIMARY KEY, kind text NOT NULL, payload jsonb NOT NULL, state smallint NOT NULL DEFAULT 0,
  attempts int NOT NULL DEFAULT 0, worker int NOT NULL DEFAULT 0, lease_until timestamptz,
  lease bigint NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now(), finished_at timestamptz
);
CREATE INDEX IF NOT EXISTS jobs_queued ON jobs (id) WHERE state = 0;
TRUNCATE jobs RESTART IDENTITY`;

const insert = "INSERT INTO jobs (kind, payload) SELECT $1, $2 FROM generate_series(1, $3::int)";
const taken = "state = 1, attempts = attempts + 1, lease = lease + 1";

export const jobStatements = {
  fetchNext: {
    name: "job_fetch_next",
    text: `UPDATE jobs SET ${taken}, worker = $1, lease_until = now() + $2::int * interval '1 ms'
      WHERE id = (SELECT id FROM jobs WHERE state = 0 ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1)
      RETURNING id, lease, kind, payload::text AS payload`,
  },
  acknowledge: {
    name: "job_ack",
    text: "UPDATE jobs SET state = 2, finished_at = now() WHERE id = $1 AND state = 1 AND lease = $2",
  },
  lease: {
    name: "job_lease",
    text: `WITH next AS MATERIALIZED (
        SELECT id FROM jobs WHERE state = 0 ORDER BY id FOR UPDATE SKIP LOCKED LIMIT $2
      )
      UPDATE jobs SET ${taken}, worker = $1, lease_until = now() + $3::int * interval '1 ms'
      FROM next WHERE jobs.id = next.id RETURNING jobs.id`,
  },
};

const expire = "UPDATE jobs SET state = 0 WHERE state = 1 AND lease_until < now()";

interface Row {
  id: string;
  lease: string;
  kind: string;
  payload: string;
}

/** `isPrepared`: each statement is parsed once per connection. */
export function postgresJobs(pool: pg.Pool, counter: RetryCounter, isPrepared: boolean): JobStore {
  const run = ({ name, text }: { name: string; text: string }, values: unknown[]) =>
    withRetries(() => pool.query<Row>(isPrepared ? { name, text, values } : { text, values }), counter);
  return {
    async seed(count) {
      await pool.query(createTable);
      await pool.query(insert, [jobKind, jobPayload, count]);
    },
    async fetchNext(worker, leaseMs): Promise<FetchedJob | undefined> {
      const { rows } = await run(jobStatements.fetchNext, [worker, leaseMs]);
      const row = rows[0];
      return row && { ...row, id: Number(row.id), lease: Number(row.lease) };
    },
    acknowledge: async (id, lease) => (await run(jobStatements.acknowledge, [id, lease])).rowCount === 1,
    lease: async (worker, max, leaseMs) =>
      (await run(jobStatements.lease, [worker, max, leaseMs])).rows.map(({ id }) => Number(id)),
    expire: async () => (await run({ name: "job_expire", text: expire }, [])).rowCount ?? 0,
    async counts() {
      const { rows } = await pool.query<{ state: number; count: string }>(
        "SELECT state, count(*) AS count FROM jobs GROUP BY state",
      );
      return jobStates.map((_, state) => Number(rows.find((row) => row.state === state)?.count ?? 0));
    },
    async repeated() {
      const { rows } = await pool.query<{ count: string }>(
        "SELECT count(*) AS count FROM jobs WHERE attempts <> 1",
      );
      return Number(rows[0]!.count);
    },
  };
}
