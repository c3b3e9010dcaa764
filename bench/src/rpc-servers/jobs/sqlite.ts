// The job queue in SQLite (section 17.2): one writer at a time, so that there is nothing to skip.

import type Database from "better-sqlite3";
import { type FetchedJob, type JobStore, jobKind, jobPayload, jobStates } from "./store";

const createTable = `
CREATE TABLE IF NOT EXISTS jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, payload TEXT NOT NULL, state INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0, worker INTEGER NOT NULL DEFAULT 0, lease_until INTEGER,
  lease INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL, finished_at INTEGER
);
CREATE INDEX IF NOT EXISTS jobs_queued ON jobs (id) WHERE state = 0`;

export function sqliteJobs(database: Database.Database): JobStore {
  database.exec(createTable);
  const insert = database.prepare("INSERT INTO jobs (kind, payload, created_at) VALUES (?, ?, ?)");
  const queued = database.prepare<[number], FetchedJob>(
    "SELECT id, lease + 1 AS lease, kind, payload FROM jobs WHERE state = 0 ORDER BY id LIMIT ?",
  );
  const take = database.prepare(
    "UPDATE jobs SET state = 1, attempts = attempts + 1, lease = lease + 1, worker = ?, lease_until = ? WHERE id = ?",
  );
  const finish = database.prepare(
    "UPDATE jobs SET state = 2, finished_at = ? WHERE id = ? AND state = 1 AND lease = ?",
  );
  const putBack = database.prepare("UPDATE jobs SET state = 0 WHERE state = 1 AND lease_until < ?");
  const byState = database.prepare<[], { state: number; count: number }>(
    "SELECT state, count(*) AS count FROM jobs GROUP BY state",
  );
  const repeated = database.prepare<[], { count: number }>(
    "SELECT count(*) AS count FROM jobs WHERE attempts <> 1",
  );
  const takeUpTo = database.transaction((worker: number, max: number, leaseMs: number) => {
    const jobs = queued.all(max);
    for (const { id } of jobs) take.run(worker, Date.now() + leaseMs, id);
    return jobs;
  });
  const seed = database.transaction((count: number) => {
    database.exec("DELETE FROM jobs");
    for (let job = 0; job < count; job++) insert.run(jobKind, jobPayload, Date.now());
  });
  return {
    seed: (count) => seed.immediate(count),
    fetchNext: (worker, leaseMs) => takeUpTo.immediate(worker, 1, leaseMs)[0],
    acknowledge: (id, lease) => finish.run(Date.now(), id, lease).changes === 1,
    lease: (worker, max, leaseMs) => takeUpTo.immediate(worker, max, leaseMs).map(({ id }) => id),
    expire: () => putBack.run(Date.now()).changes,
    counts: () => {
      const rows = byState.all();
      return jobStates.map((_, state) => rows.find((row) => row.state === state)?.count ?? 0);
    },
    repeated: () => repeated.get()!.count,
  };
}
