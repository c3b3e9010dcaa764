// YCSB A to F (section 15): the mixes, their generators, the load phase and the verification.

import { type Config, UsageError } from "../../config";
import type { LoadReport } from "../../core/result";
import { fmix32, kindOf, type Mix, mixOf, rng32, value, workerSeed } from "../random";
import type { Operation, Outcome, SystemUnderTest, Verdict, Workload, WorkloadRun } from "../workload";
import {
  InsertCounter,
  type KeyChooser,
  keyOf,
  latest,
  onlyAcknowledged,
  scrambledZipf,
  uniform,
} from "./keys";
import { WrittenFields } from "./written_fields";

export const fieldCount = 10;
export const fieldLength = 100;
const scanLengthMax = 100;
const dataSeed = 1;
const rowsPerLoadCall = 500;
const defaultRecords = 1_000_000;
const smokeRecords = 10_000;
const defaultOperations = 1_000_000;
const defaultSamples = 3;
const sampledRecords = 1_000;
const verifySeed = 0x5eed;

export type Kind = "read" | "update" | "insert" | "scan" | "rmw";
export type Letter = "a" | "b" | "c" | "d" | "e" | "f";
export type Distribution = "uniform" | "zipfian" | "latest";

const mixes: Record<Letter, Mix<Kind>> = {
  a: mixOf({ read: 0.5, update: 0.5 }),
  b: mixOf({ read: 0.95, update: 0.05 }),
  c: mixOf({ read: 1 }),
  d: mixOf({ read: 0.95, insert: 0.05 }),
  e: mixOf({ scan: 0.95, insert: 0.05 }),
  f: mixOf({ read: 0.5, rmw: 0.5 }),
};

const insertShareOfE = 0.05;

/** The value that a field of a record is loaded with. */
export const loadedValue = (record: number, field: number): string =>
  value(fmix32(dataSeed + fieldCount * record + field), fieldLength);

export const loadedFields = (record: number): string[] =>
  Array.from({ length: fieldCount }, (_, field) => loadedValue(record, field));

export interface YcsbParameters {
  letter: Letter;
  records: number;
  /** How many operations the run may have: workload E sizes its key space by it. */
  operations: number;
  seed: number;
  distribution: Distribution | undefined;
  theta: number;
}

/** What the workers of one run share: the records that were inserted, and the fields that were written. */
export class YcsbState {
  readonly inserts: InsertCounter;
  readonly written = new WrittenFields();

  constructor(readonly parameters: YcsbParameters) {
    this.inserts = new InsertCounter(parameters.records);
  }

  chooser(): KeyChooser {
    const { letter, records, operations, distribution, theta } = this.parameters;
    const last = () => this.inserts.last;
    if ((distribution ?? (letter === "d" && "latest")) === "latest") return latest(last, theta);
    const over = (space: number) =>
      distribution === "uniform" ? uniform(space) : scrambledZipf(space, theta);
    if (letter !== "e") return over(records);
    // Room for what will be inserted; what is not there yet is drawn again.
    return onlyAcknowledged(over(Math.floor(records + 2 * operations * insertShareOfE)), last);
  }
}

interface YcsbOperation extends Operation {
  kind: Kind;
  record: number;
  field?: number;
  valueSeed?: number;
}

/** Draws in this order: kind, key, then what the kind needs (section 15.2). */
export function ycsbGenerator(state: YcsbState, worker: number) {
  const { seed, letter } = state.parameters;
  const random = rng32(workerSeed(seed, worker));
  const choose = state.chooser();
  return {
    next(): YcsbOperation {
      const kind = kindOf(mixes[letter], random.unit());
      if (kind === "insert") {
        const record = state.inserts.take();
        return { kind, record, args: { key: keyOf(record), fields: loadedFields(record) } };
      }
      const record = choose(random);
      const key = keyOf(record);
      if (kind === "read") return { kind, record, args: { key } };
      if (kind === "scan") {
        const count = 1 + Math.floor(random.unit() * scanLengthMax);
        return { kind, record, args: { key, count } };
      }
      const field = Math.floor(random.unit() * fieldCount);
      const valueSeed = random.u32();
      return { kind, record, field, valueSeed, args: { key, field, value: value(valueSeed, fieldLength) } };
    },
    ended(operation: Operation, outcome: Outcome | undefined): void {
      const { kind, record, field, valueSeed } = operation as YcsbOperation;
      const isDone = outcome?.ok === true && !outcome.miss;
      if (kind === "insert") {
        if (isDone) state.inserts.acknowledge(record);
      } else if (field !== undefined && valueSeed !== undefined) {
        state.written.note(record, field, isDone ? valueSeed : undefined);
      }
    },
  };
}

/** The ten fields of a row as a connector found it. */
export function fieldsOf(row: unknown): string[] {
  const record = row as Record<string, unknown>;
  return Array.from({ length: fieldCount }, (_, field) => String(record[`field${field}`]));
}

async function load({ run }: SystemUnderTest, records: number): Promise<LoadReport> {
  await run("clear");
  const start = performance.now();
  for (let first = 0; first < records; first += rowsPerLoadCall) {
    const count = Math.min(rowsPerLoadCall, records - first);
    const rows = Array.from({ length: count }, (_, index) => {
      const record = first + index;
      return { key: keyOf(record), fields: loadedFields(record) };
    });
    await run("insert_many", { rows });
  }
  const seconds = (performance.now() - start) / 1000;
  return { rows: records, seconds, rows_per_s: records / seconds };
}

/** What is wrong with a record, or undefined. */
function wrongWith(state: YcsbState, record: number, fields: readonly string[]): string | undefined {
  for (let field = 0; field < fieldCount; field++) {
    const found = fields[field]!;
    if (found.length !== fieldLength)
      return `field ${field} of ${keyOf(record)} has ${found.length} characters`;
    const expected = state.written.expected(record, field, loadedValue);
    if (expected !== undefined && found !== expected)
      return `field ${field} of ${keyOf(record)} has another value`;
  }
  return undefined;
}

async function verify(state: YcsbState, { run }: SystemUnderTest): Promise<Verdict> {
  const { records } = state.parameters;
  const expected = records + state.inserts.acknowledgedInserts;
  const { found: counted } = await run("count");
  if (Number(counted) !== expected)
    return { ok: false, message: `${counted} records instead of ${expected}` };
  const random = rng32(verifySeed);
  const written = state.written.sample(sampledRecords / 2);
  const samples = Math.min(sampledRecords, expected);
  for (let index = 0; index < samples; index++) {
    const record = written[index] ?? Math.floor(random.unit() * (state.inserts.last + 1));
    const outcome = await run("read", { key: keyOf(record) });
    if (!outcome.ok || outcome.miss) return { ok: false, message: `${keyOf(record)} is missing` };
    const wrong = wrongWith(state, record, fieldsOf(outcome.found));
    if (wrong) return { ok: false, message: wrong };
  }
  return { ok: true, message: `${expected} records, ${samples} of them read and compared` };
}

function limitOf(config: Config): WorkloadRun["limit"] {
  if (config.ops === undefined && config.given?.has("seconds")) {
    return { mode: "time", seconds: config.seconds, warmupSec: config.warmupSec };
  }
  return { mode: "count", operations: config.ops ?? defaultOperations };
}

export function ycsbWorkload(letter: Letter): Workload {
  const name = `ycsb-${letter}`;
  return {
    name,
    samples: defaultSamples,
    runs: (config) => {
      const records = config.records ?? (config.smoke ? smokeRecords : defaultRecords);
      if (config.theta <= 0 || config.theta >= 1) {
        throw new UsageError(`--theta must be between 0 and 1, not ${config.theta}`);
      }
      const limit = limitOf(config);
      const operations = limit.mode === "count" ? limit.operations : defaultOperations;
      const create = (): WorkloadRun => {
        const state = new YcsbState({
          letter,
          records,
          operations,
          seed: config.benchSeed,
          distribution: config.dist,
          theta: config.theta,
        });
        return {
          parameters: {
            records,
            ...(limit.mode === "time" ? { seconds: limit.seconds } : { operations }),
            ...(config.dist && { distribution: config.dist }),
            ...(config.theta !== 0.99 && { theta: config.theta }),
          },
          limit,
          concurrency: config.concurrency,
          load: (system) => load(system, records),
          generator: (worker) => ycsbGenerator(state, worker),
          verify: (system) => verify(state, system),
        };
      };
      return [{ label: `with ${records} records`, create }];
    },
  };
}
