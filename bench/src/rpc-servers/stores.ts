// What servers and connectors without a server keep their data in, by test: each is made when it is used, since it may make its
// tables.

import type Database from "better-sqlite3";
import type pg from "pg";
import { drizzleContent } from "./content/drizzle";
import { postgresContent } from "./content/postgres";
import { sqliteContent } from "./content/sqlite";
import { type ContentStore, contentMethods } from "./content/store";
import { drizzleCrm } from "./crm/drizzle";
import { postgresCrm } from "./crm/postgres";
import { sqliteCrm } from "./crm/sqlite";
import { type CrmStore, crmMethods } from "./crm/store";
import type { Orm } from "./drizzle";
import { postgresJobs } from "./jobs/postgres";
import { sqliteJobs } from "./jobs/sqlite";
import { type JobStore, jobMethods } from "./jobs/store";
import { drizzleNotes } from "./notes/drizzle";
import { postgresNotes } from "./notes/postgres";
import { sqliteNotes } from "./notes/sqlite";
import { type NoteStore, noteMethods } from "./notes/store";
import type { RetryCounter } from "./postgres/retry";
import type { RpcMethods } from "./rpc";
import { drizzleYcsb } from "./ycsb/drizzle";
import { postgresYcsb } from "./ycsb/postgres";
import { sqliteYcsb } from "./ycsb/sqlite";
import { type YcsbStore, ycsbMethods } from "./ycsb/store";

export interface Stores {
  ycsb(): YcsbStore;
  jobs(): JobStore;
  notes(): NoteStore;
  crm(): CrmStore;
  content(): ContentStore;
}

/** By plain statements; `isPrepared`: those of the job queue are parsed once per connection. */
export const postgresStores = (pool: pg.Pool, counter: RetryCounter, isPrepared: boolean): Stores => ({
  ycsb: () => postgresYcsb(pool, counter),
  jobs: () => postgresJobs(pool, counter, isPrepared),
  notes: () => postgresNotes(pool),
  crm: () => postgresCrm(pool),
  content: () => postgresContent(pool),
});

export const sqliteStores = (database: Database.Database): Stores => ({
  ycsb: () => sqliteYcsb(database),
  jobs: () => sqliteJobs(database),
  notes: () => sqliteNotes(database),
  crm: () => sqliteCrm(database),
  content: () => sqliteContent(database),
});

/** All but the job queue through Drizzle; what is not measured stays with the plain statements. */
export const drizzleStores = (orm: Orm, plain: Stores): Stores => ({
  ycsb: () => drizzleYcsb(orm, plain.ycsb),
  jobs: plain.jobs,
  notes: () => drizzleNotes(orm, plain.notes),
  crm: () => drizzleCrm(orm, plain.crm),
  content: () => drizzleContent(orm, plain.content),
});

/** The RPC methods of these stores. */
export const storeMethods = ({ ycsb, jobs, notes, crm, content }: Partial<Stores>): RpcMethods => ({
  ...(ycsb && ycsbMethods(ycsb())),
  ...(jobs && jobMethods(jobs())),
  ...(notes && noteMethods(notes())),
  ...(crm && crmMethods(crm())),
  ...(content && contentMethods(content())),
});
