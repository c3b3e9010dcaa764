// The job queue in PostgreSQL (section 17.2): workers skip the rows that others have locked.

import type pg from "pg";
import { type RetryCounter, withRetries } from "../postgres/retry";
import { numberTypes } from "../postgres/statements";
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

const jobStatements = {
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
  expire: { name: "job_expire", text: "UPDATE jobs SET state = 0 WHERE state = 1 AND lease_until < now()" },
  counts: { name: "job_counts", text: "SELECT state, count(*) AS count FROM jobs GROUP BY state" },
  repeated: { name: "job_repeated", text: "SELECT count(*) AS count FROM jobs WHERE attempts <> 1" },
};

type Row = FetchedJob & { state: number; count: number };

/** `isPrepared`: each statement is parsed once per connection. */
export function postgresJobs(pool: pg.Pool, counter: RetryCounter, isPrepared: boolean): JobStore {
  const run = ({ name, text }: { name: string; text: string }, ...values: unknown[]) =>
    withRetries(
      () => pool.query<Row>({ text, values, types: numberTypes, ...(isPrepared && { name }) }),
      counter,
    );
  return {
    async seed(count) {
      await pool.query(createTable);
      await pool.query(insert, [jobKind, jobPayload, count]);
    },
    fetchNext: async (worker, leaseMs) => (await run(jobStatements.fetchNext, worker, leaseMs)).rows[0],
    acknowledge: async (id, lease) => (await run(jobStatements.acknowledge, id, lease)).rowCount === 1,
    lease: async (worker, max, leaseMs) =>
      (await run(jobStatements.lease, worker, max, leaseMs)).rows.map(({ id }) => id),
    expire: async () => (await run(jobStatements.expire)).rowCount ?? 0,
    async counts() {
      const { rows } = await run(jobStatements.counts);
      return jobStates.map((_, state) => rows.find((row) => row.state === state)?.count ?? 0);
    },
    repeated: async () => (await run(jobStatements.repeated)).rows[0]!.count,
  };
}
