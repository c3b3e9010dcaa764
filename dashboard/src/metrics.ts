// What the server counts, looked at every two seconds: rates, and their course. The server itself keeps one look a minute.

import * as api from "./api";
import { isObject, type Json } from "./json";
import { parseMetrics, type Samples, sum } from "./prometheus";
import { session } from "./session";
import { Store } from "./store";

/** Points of the last quarter of an hour, and of six hours. */
const FINE = { every_ms: 2_000, points_max: 450 };
const COARSE = { every_ms: 60_000, points_max: 360 };
/** Databases and functions beyond these are not followed. */
const DATABASES_MAX = 500;
const FUNCTIONS_MAX = 400;

export interface FunctionRates {
  kind: string;
  name: string;
  calls: number;
  errors: number;
  p50_us: number | undefined;
  p99_us: number | undefined;
}

export interface Point {
  at: number;
  calls: number;
  errors: number;
  transactions: number;
  queries: number;
  inserts: number;
  deletes: number;
  received: number;
  sent: number;
  sentMessages: number;
  logBytes: number;
  syncs: number;
  p50_us: number | undefined;
  p99_us: number | undefined;
  wait99_us: number | undefined;
  round99_us: number | undefined;
  clients: number;
  liveQueries: number;
  inbox: number;
  logQueue: number;
  reads: number;
  functions: Map<string, FunctionRates>;
  tables: Map<string, { inserts: number; deletes: number }>;
}

export interface ServerPoint {
  at: number;
  cpu: number;
  memory: number;
  connections: number;
  syncs: number;
  received: number;
  sent: number;
}

export interface Times {
  buckets: number[];
  sum_us: number;
  longest_us: number;
}

export interface Counted {
  identity: string;
  names: string[];
  isOpen: boolean;
  isReadOnly: boolean;
  numbers: Record<string, number>;
  times: Record<string, Times>;
  queries: Record<string, Times>;
  functions: Map<string, { kind: string; name: string; errors: Record<string, number>; times: Times }>;
  tables: Map<string, { name: string; rows: number; bytes: number; inserted: number; deleted: number }>;
}

/** The course of something: raw counts of the last look, and points. */
class Course<Raw, P> {
  readonly points: P[] = [];
  #last: { at: number; raw: Raw } | undefined;
  readonly #every_ms: number;
  readonly #points_max: number;

  constructor(of: { every_ms: number; points_max: number }) {
    this.#every_ms = of.every_ms;
    this.#points_max = of.points_max;
  }

  add(at: number, raw: Raw, make: (before: Raw, seconds: number) => P): void {
    const last = this.#last;
    if (last && at - last.at < this.#every_ms * 0.6) return;
    this.#last = { at, raw };
    if (!last) return;
    this.points.push(make(last.raw, (at - last.at) / 1000));
    if (this.points.length > this.#points_max) this.points.shift();
  }
}

export interface Track {
  now: Counted;
  fine: Point[];
  coarse: Point[];
}

interface Following {
  now: Counted;
  fine: Course<Counted, Point>;
  coarse: Course<Counted, Point>;
}

export interface Metrics {
  /** Whether the server tells this visitor about itself; undefined: it has not been asked yet. */
  isServerOpen: boolean | undefined;
  databases: Map<string, Track>;
  server: { now: Samples; fine: ServerPoint[]; coarse: ServerPoint[] } | undefined;
  bounds: number[];
  /** Why the database that is looked at has no numbers. */
  error: string | undefined;
}

const EMPTY: Metrics = {
  isServerOpen: undefined,
  databases: new Map(),
  server: undefined,
  bounds: [],
  error: undefined,
};

export const metrics = new Store<Metrics>(EMPTY);

const following = new Map<string, Following>();
let serverFine = new Course<Samples, ServerPoint>(FINE);
let serverCoarse = new Course<Samples, ServerPoint>(COARSE);
/** Databases that are asked for one by one where the server does not tell of all. */
const wanted = new Set<string>();

/** Of these the visitor may not see numbers, and why: they are asked for once. */
const refused = new Map<string, string>();

/** Whose course before the page was opened is known, or could not be had. The server is "". */
const recalled = new Set<string>();

export function want(databases: string[]): void {
  wanted.clear();
  for (const name of databases.slice(0, 30)) wanted.add(name);
}

// Looking -------------------------------------------------------------------------------------------------------------

let timer: ReturnType<typeof setTimeout> | undefined;
let generation = 0;

session.subscribe(() => {
  generation++;
  following.clear();
  refused.clear();
  recalled.clear();
  serverFine = new Course(FINE);
  serverCoarse = new Course(COARSE);
  metrics.set(EMPTY);
  look(generation);
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) look(++generation);
});

export const lookNow = (): void => void look(++generation);

async function look(of: number): Promise<void> {
  clearTimeout(timer);
  const token = session.get()?.token;
  if (!token || document.hidden) return;
  const next: Metrics = { ...metrics.get() };
  try {
    if (next.isServerOpen !== false) await lookAtServer(next, token);
    if (!next.isServerOpen) await lookAtWanted(next, token);
    await recall(next, token);
  } catch (error) {
    next.error = api.messageOf(error);
  }
  if (of !== generation) return;
  metrics.set(next);
  timer = setTimeout(() => look(of), FINE.every_ms);
}

async function lookAtServer(next: Metrics, token: string): Promise<void> {
  const [all, text] = await Promise.all([
    api.ask("metrics?format=json", { token }).then(parsed),
    api.ask("metrics", { token }),
  ]);
  next.isServerOpen = all !== undefined && text.status === 200;
  if (!next.isServerOpen) return;
  next.error = undefined;
  take(next, all!);
  const at = Date.now();
  const samples = parseMetrics(text.text);
  const make = (before: Samples, seconds: number) => serverPoint(at, before, samples, seconds);
  serverFine.add(at, samples, make);
  serverCoarse.add(at, samples, make);
  next.server = { now: samples, fine: serverFine.points, coarse: serverCoarse.points };
}

/** Takes what the server has kept of itself, and of the one database that is looked at. */
async function recall(next: Metrics, token: string): Promise<void> {
  if (next.server && !recalled.has("")) {
    recalled.add("");
    const read = (counts: Json | undefined) => parseMetrics(String(counts));
    serverCoarse = await courseOf("metrics?format=history", token, read, serverPoint);
    next.server = { ...next.server, coarse: serverCoarse.points };
  }
  const [name, ...others] = wanted;
  const track = name === undefined || others.length > 0 ? undefined : trackOf(next, name);
  const known = track && following.get(track.now.identity);
  if (!known || recalled.has(known.now.identity)) return;
  const { identity } = known.now;
  recalled.add(identity);
  const make = (at: number, before: Counted, now: Counted, seconds: number) =>
    pointOf(at, before, now, seconds, next.bounds);
  const path = `database/${api.part(identity)}/metrics?format=history`;
  known.coarse = await courseOf(path, token, countedOf, make);
  next.databases.set(identity, { ...track!, coarse: known.coarse.points });
}

async function courseOf<Raw, P>(
  path: string,
  token: string,
  read: (counts: Json | undefined) => Raw,
  make: (at: number, before: Raw, now: Raw, seconds: number) => P,
): Promise<Course<Raw, P>> {
  const course = new Course<Raw, P>(COARSE);
  const answer = await api.ask(path, { token }).then(parsed);
  for (const look of objects(isObject(answer) ? answer["looks"] : undefined)) {
    const [at, raw] = [Number(look["at_ms"]), read(look["counts"])];
    course.add(at, raw, (before, seconds) => make(at, before, raw, seconds));
  }
  return course;
}

async function parsed(answer: api.Answer): Promise<Json | undefined> {
  return answer.status === 200 ? (JSON.parse(answer.text) as Json) : undefined;
}

async function lookAtWanted(next: Metrics, token: string): Promise<void> {
  const looks = [...wanted].map(async (name) => {
    if (refused.has(name)) {
      next.error = refused.get(name)!;
      return false;
    }
    const answer = await api.ask(`database/${api.part(name)}/metrics`, { token });
    if (answer.status === 200) take(next, JSON.parse(answer.text) as Json);
    else next.error = answer.text.trim();
    if (answer.status === 403) refused.set(name, next.error ?? "");
    return answer.status === 200;
  });
  const seen = await Promise.all(looks);
  if (seen.every(Boolean)) next.error = undefined;
}

function take(next: Metrics, json: Json): void {
  if (!isObject(json)) return;
  next.bounds = (Array.isArray(json["bounds_us"]) ? json["bounds_us"] : []).map(Number);
  const listed = Array.isArray(json["databases"]) ? json["databases"] : [];
  const at = Date.now();
  for (const one of listed.slice(0, DATABASES_MAX)) {
    const now = countedOf(one);
    const known: Following = following.get(now.identity) ?? {
      now,
      fine: new Course(FINE),
      coarse: new Course(COARSE),
    };
    known.now = now;
    const make = (before: Counted, seconds: number) => pointOf(at, before, now, seconds, next.bounds);
    known.fine.add(at, now, make);
    known.coarse.add(at, now, make);
    following.set(now.identity, known);
  }
  const tracks = [...following].map(([identity, { now, fine, coarse }]): [string, Track] => [
    identity,
    { now, fine: fine.points, coarse: coarse.points },
  ]);
  next.databases = new Map(tracks);
}

// Reading -------------------------------------------------------------------------------------------------------------

const NO_TIMES: Times = { buckets: [], sum_us: 0, longest_us: 0 };

function timesOf(json: Json | undefined): Times {
  if (!isObject(json)) return NO_TIMES;
  return {
    buckets: (Array.isArray(json["buckets"]) ? json["buckets"] : []).map(Number),
    sum_us: Number(json["sum_us"] ?? 0),
    longest_us: Number(json["longest_us"] ?? 0),
  };
}

const objects = (json: Json | undefined): { [key: string]: Json }[] =>
  Array.isArray(json) ? json.filter(isObject) : [];

function countedOf(json: Json | undefined): Counted {
  const of = isObject(json) ? json : {};
  const numbers: Record<string, number> = {};
  const times: Record<string, Times> = {};
  for (const [name, value] of Object.entries(of)) {
    if (typeof value === "number" || typeof value === "bigint") numbers[name] = Number(value);
    if (isObject(value) && "buckets" in value) times[name] = timesOf(value);
  }
  const queries = isObject(of["queries"]) ? Object.entries(of["queries"]) : [];
  const functions = objects(of["functions"])
    .slice(0, FUNCTIONS_MAX)
    .map((one) => {
      const [kind, name] = [String(one["kind"]), String(one["name"])];
      const errors = { sender: 0, traps: 0, timeouts: 0, refused: 0 };
      errors.sender = Number(one["sender_errors"] ?? 0);
      errors.traps = Number(one["traps"] ?? 0);
      errors.timeouts = Number(one["timeouts"] ?? 0);
      errors.refused = Number(one["refused"] ?? 0);
      return [`${kind} ${name}`, { kind, name, errors, times: timesOf(one["times"]) }] as const;
    });
  const tables = objects(of["tables"]).map((one) => {
    const name = String(one["name"]);
    const [rows, bytes] = [Number(one["rows"] ?? 0), Number(one["bytes"] ?? 0)];
    const [inserted, deleted] = [Number(one["inserted"] ?? 0), Number(one["deleted"] ?? 0)];
    return [name, { name, rows, bytes, inserted, deleted }] as const;
  });
  return {
    identity: String(of["identity"] ?? ""),
    names: (Array.isArray(of["names"]) ? of["names"] : []).map(String),
    isOpen: of["is_open"] !== false,
    isReadOnly: of["is_read_only"] === true,
    numbers,
    times,
    queries: Object.fromEntries(queries.map(([name, value]) => [name, timesOf(value)])),
    functions: new Map(functions),
    tables: new Map(tables),
  };
}

export const countOf = (times: Times | undefined): number =>
  times ? times.buckets.reduce((a, b) => a + b, 0) : 0;

export const errorsOf = (of: { errors: Record<string, number> }): number =>
  Object.values(of.errors).reduce((a, b) => a + b, 0);

function difference(before: Times | undefined, now: Times): Times {
  const buckets = now.buckets.map((count, at) => Math.max(0, count - (before?.buckets[at] ?? 0)));
  return { buckets, sum_us: Math.max(0, now.sum_us - (before?.sum_us ?? 0)), longest_us: now.longest_us };
}

/** In microseconds, by the bucket it lies in; undefined if nothing was counted. */
export function quantile(times: Times, bounds: number[], part: number): number | undefined {
  const total = countOf(times);
  if (total === 0) return undefined;
  let left = part * total;
  for (const [at, count] of times.buckets.entries()) {
    if (left <= count && count > 0) {
      const low = at === 0 ? 0 : (bounds[at - 1] ?? 0);
      return low + ((bounds[at] ?? Math.max(low, times.longest_us)) - low) * (left / count);
    }
    left -= count;
  }
  return bounds.at(-1);
}

function pointOf(at: number, before: Counted, now: Counted, seconds: number, bounds: number[]): Point {
  const per = (name: string) => Math.max(0, (now.numbers[name] ?? 0) - (before.numbers[name] ?? 0)) / seconds;
  const all: Times = { buckets: [], sum_us: 0, longest_us: 0 };
  const functions = new Map<string, FunctionRates>();
  let [calls, errors] = [0, 0];
  for (const [key, of] of now.functions) {
    const old = before.functions.get(key);
    const times = difference(old?.times, of.times);
    const rates = {
      kind: of.kind,
      name: of.name,
      calls: countOf(times) / seconds,
      errors: Math.max(0, errorsOf(of) - (old ? errorsOf(old) : 0)) / seconds,
      p50_us: quantile(times, bounds, 0.5),
      p99_us: quantile(times, bounds, 0.99),
    };
    if (rates.calls > 0 || rates.errors > 0) functions.set(key, rates);
    if (of.kind === "view") continue;
    calls += rates.calls;
    errors += rates.errors;
    for (const [bucket, count] of times.buckets.entries())
      all.buckets[bucket] = (all.buckets[bucket] ?? 0) + count;
    all.longest_us = Math.max(all.longest_us, times.longest_us);
  }
  const filled: Times = { ...all, buckets: Array.from(all.buckets, (count) => count ?? 0) };
  const tables = new Map<string, { inserts: number; deletes: number }>();
  let [inserts, deletes] = [0, 0];
  for (const [key, of] of now.tables) {
    const old = before.tables.get(key);
    const rates = {
      inserts: Math.max(0, of.inserted - (old?.inserted ?? 0)) / seconds,
      deletes: Math.max(0, of.deleted - (old?.deleted ?? 0)) / seconds,
    };
    if (rates.inserts || rates.deletes) tables.set(key, rates);
    inserts += rates.inserts;
    deletes += rates.deletes;
  }
  const counts = (of: Record<string, Times>) =>
    Object.values(of).reduce((all, times) => all + countOf(times), 0);
  const timed = (name: string, part: number) =>
    quantile(difference(before.times[name], now.times[name] ?? NO_TIMES), bounds, part);
  return {
    at,
    calls,
    errors,
    transactions: per("transactions"),
    queries: Math.max(0, counts(now.queries) - counts(before.queries)) / seconds,
    inserts,
    deletes,
    received: per("received_bytes"),
    sent: per("sent_bytes"),
    sentMessages: per("sent_messages"),
    logBytes: per("log_bytes"),
    syncs: per("log_syncs"),
    p50_us: quantile(filled, bounds, 0.5),
    p99_us: quantile(filled, bounds, 0.99),
    wait99_us: timed("waits", 0.99),
    round99_us: timed("rounds", 0.99),
    clients: now.numbers["clients"] ?? 0,
    liveQueries: now.numbers["live_queries"] ?? 0,
    inbox: now.numbers["inbox_messages"] ?? 0,
    logQueue: now.numbers["log_queue_bytes"] ?? 0,
    reads: now.numbers["reads_under_way"] ?? 0,
    functions,
    tables,
  };
}

function serverPoint(at: number, before: Samples, now: Samples, seconds: number): ServerPoint {
  const per = (name: string) => Math.max(0, sum(now, name) - sum(before, name)) / seconds;
  return {
    at,
    cpu: per("process_cpu_seconds_total") * 100,
    memory: sum(now, "process_resident_memory_bytes"),
    connections: sum(now, "lightcone_connections"),
    syncs: per("lightcone_log_syncs_total"),
    received: per("lightcone_websocket_request_bytes_total"),
    sent: per("lightcone_websocket_sent_bytes_total"),
  };
}

/** The track of a database by its identity or one of its names. */
export function trackOf(of: Metrics, database: string): Track | undefined {
  const known = of.databases.get(database.replace(/^0x/, ""));
  if (known) return known;
  for (const track of of.databases.values()) if (track.now.names.includes(database)) return track;
  return undefined;
}
