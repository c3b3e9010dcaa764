// The modules of the workloads in Rust and in TypeScript: the same calls have the same answers. Every function of the
// bindings is called, so that none can be in one language only.

import { expect, it } from "vitest";
import * as content from "../bindings/content-spacetimedb";
import * as jobs from "../bindings/jobs-spacetimedb";
import * as notes from "../bindings/notes-spacetimedb";
import * as ycsb from "../bindings/ycsb-spacetimedb";
import type { CallArguments } from "../src/connectors/connector";
import { loadConnector } from "../src/tests/find";
import { testContext } from "./support/preparation";

type Call = [name: string, args?: CallArguments];

interface Bindings {
  reducers: object;
  procedures: object;
}

/** Times are of their servers; what has not happened has the first of all. */
function withoutTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTimes);
  if (typeof value !== "object" || value === null) return value;
  const micros = (value as { microsSinceUnixEpoch?: bigint }).microsSinceUnixEpoch;
  if (micros !== undefined) return micros === 0n ? "never" : "at some time";
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, withoutTimes(part)]));
}

async function answers(key: string, test: string, calls: Call[], bindings: Bindings): Promise<unknown[]> {
  const definition = await loadConnector(key, test);
  const differences = { stdbModule: "test-1", stdbConfirmedReads: true, stdbCompression: "none" } as const;
  const context = testContext(differences);
  const prepared = await definition.prepare(context);
  const connection = definition.create(context.config, prepared);
  try {
    await connection.open(1);
    const all: unknown[] = [];
    for (const [name, args] of calls) {
      try {
        const answer = await connection.call(name, args);
        // How long it took.
        all.push([name, name === "benchLoop" ? typeof answer : withoutTimes(answer)]);
      } catch (error) {
        // A procedure ends with what its language says of errors; a reducer with the text that the module gave.
        all.push([name, "refused", Object.hasOwn(bindings.reducers, name) ? (error as Error).message : ""]);
      }
    }
    return all;
  } finally {
    await connection.close();
    await prepared.stop();
    context.end();
  }
}

const fieldsOf = (name: string, count = 10) =>
  Array.from({ length: count }, (_, field) => `${name} ${field}`);

const ycsbCalls: Call[] = [
  ["ycsbInsert", { key: "left over", fields: fieldsOf("left over") }],
  ["ycsbClear"],
  ["ycsbCount"],
  ["ycsbInsertMany", { rows: ["b", "d", "a"].map((key) => ({ key, fields: fieldsOf(key) })) }],
  ["ycsbInsert", { key: "c", fields: fieldsOf("c") }],
  ["ycsbInsert", { key: "c", fields: fieldsOf("again") }],
  ["ycsbInsert", { key: "e", fields: fieldsOf("e", 9) }],
  [
    "ycsbInsertMany",
    { rows: ["f", "g"].map((key) => ({ key, fields: fieldsOf(key, key === "f" ? 10 : 11) })) },
  ],
  ["ycsbCount"],
  ["ycsbUpdate", { key: "b", field: 9, value: "changed" }],
  ["ycsbUpdate", { key: "b", field: 10, value: "changed" }],
  ["ycsbUpdate", { key: "z", field: 1, value: "changed" }],
  ["ycsbRead", { key: "b" }],
  ["ycsbRead", { key: "z" }],
  ...Array.from({ length: 10 }, (_, field): Call => ["ycsbRmw", { key: "a", field, value: `new ${field}` }]),
  ["ycsbRmw", { key: "a", field: 10, value: "changed" }],
  ["ycsbRmw", { key: "z", field: 0, value: "changed" }],
  ["ycsbScan", { key: "a", count: 10 }],
  ["ycsbScan", { key: "bb", count: 1 }],
  ["ycsbScan", { key: "a", count: 0 }],
  ["ycsbScan", { key: "z", count: 5 }],
];

const record = { title: "title", body: "body" };
const whole = { ...record, author: "author", status: "draft", data: '{"run_id":1}' };

const contentCalls: Call[] = [
  ["contentCreate", { id: "left over", ...whole }],
  ["contentClear"],
  ["contentCount"],
  ["contentCreate", { id: "1", ...whole }],
  ["contentCreate", { id: "2", ...record, author: undefined, status: undefined, data: undefined }],
  ["contentCreate", { id: "1", ...whole }],
  ["contentUpdate", { id: "1", title: "title updated", body: "body updated", status: "published" }],
  ["contentUpdate", { id: "3", ...record, status: undefined }],
  ["contentGet", { id: "1" }],
  ["contentGet", { id: "2" }],
  ["contentDelete", { id: "2" }],
  ["contentDelete", { id: "2" }],
  ["contentGet", { id: "2" }],
  ["contentCount"],
];

const jobsCalls: Call[] = [
  ["jobSeed", { n: 3 }],
  ["jobSeed", { n: 10 }],
  ["jobFetchNext", { worker: 7, leaseMs: 60_000 }],
  ["jobAck", { id: 4n, lease: 2n }],
  ["jobAck", { id: 4n, lease: 1n }],
  ["jobAck", { id: 4n, lease: 1n }],
  ["jobAck", { id: 99n, lease: 1n }],
  ["jobLease", { worker: 7, max: 4, leaseMs: 60_000 }],
  ["jobLease", { worker: 7, max: 0, leaseMs: 60_000 }],
  ["jobExpire"],
  ["jobCounts"],
  ["jobFetchNext", { worker: 8, leaseMs: 0 }],
  ["jobExpire"],
  ["jobCounts"],
  ["jobLease", { worker: 9, max: 50, leaseMs: 60_000 }],
  ["jobFetchNext", { worker: 9, leaseMs: 60_000 }],
  ["jobCounts"],
  ["jobRepeated"],
];

const noteCalls: Call[] = [
  ["noteFirst"],
  ["noteFindMany", { limit: 20 }],
  ["noteSeed", { notes: 3, grouped: 1, group: "left over" }],
  ["noteSeed", { notes: 200, grouped: 5, group: "some" }],
  ["noteFirst"],
  ["noteCreate", { title: "created" }],
  ["noteAdd", { title: "added" }],
  ["noteCreateBare", { title: "bare" }],
  ["noteCreateMany", { n: 3 }],
  ["noteUpdate", { id: 10n, title: "updated" }],
  ["noteUpdate", { id: 1n, title: "updated" }],
  ["noteDelete", { id: 205n }],
  ["noteDelete", { id: 1n }],
  ["noteGet", { id: 10n }],
  ["noteGet", { id: 205n }],
  ["noteGet", { id: 1n }],
  ["noteFindMany", { limit: 0 }],
  ["noteFindMany", { limit: 20 }],
  ["noteFindInclude", { limit: 7 }],
  ["noteUpdateMany", { tag: "some", title: "one of some" }],
  ["noteDeleteMany", { tag: "some" }],
  ["noteCount"],
  ["noteFindMany", { limit: 1000 }],
  ["noteDeleteMany", { tag: "other" }],
  ["noteCount"],
  ["noteFindMany", { limit: 3 }],
  ["noteEvents"],
];

const company = { name: "name", domain: "domain", industry: "industry", size: 1, website: "w", phone: "p" };
const contact = { firstName: "first", lastName: "last", email: "email", phone: "phone", title: "title" };
const lead = { title: "lead", source: "web", status: "new", value: 5n, companyId: 1n, contactId: 1n };
const deal = { title: "deal", stage: "open", amount: 7n, companyId: 1n, contactId: 1n };
const activity = { kind: "call", subject: "subject", body: "body", dealId: 1n, contactId: 1n, done: false };
const closeAt = { microsSinceUnixEpoch: 1_700_000_000_000_000n };

const customerCalls: Call[] = [
  ["crmFirst"],
  ["crmSeed", { companies: 3, contacts: 10, leads: 50 }],
  ["crmFirst"],
  ["crmCreateCompany", { ...company, status: "active" }],
  ["crmCreateCompany", { ...company, status: "unknown" }],
  ["crmCreateContact", { ...contact, companyId: 2n }],
  ["crmCreateContact", { ...contact, companyId: 99n }],
  ["crmCreateLeads", { leads: [lead, { ...lead, status: "qualified" }] }],
  ["crmCreateLeads", { leads: [lead, { ...lead, status: "unknown" }] }],
  ["crmCreateLeads", { leads: [lead, { ...lead, contactId: 99n }] }],
  ["crmCreateDeal", { ...deal, closeAt }],
  ["crmCreateDeal", { ...deal, closeAt, stage: "unknown" }],
  ["crmCreateDeal", { ...deal, closeAt, companyId: 99n }],
  ["crmCreateActivity", activity],
  ["crmCreateActivity", { ...activity, kind: "unknown" }],
  ["crmCreateActivity", { ...activity, dealId: 99n }],
  ["crmFirst"],
  ["crmFindLeads", { status: "qualified", limit: 20 }],
  ["crmFindLeads", { status: "lost", limit: 3 }],
  ["crmFindContacts", { companyId: 2n, limit: 20 }],
  ["crmFindContacts", { companyId: 99n, limit: 20 }],
  ["crmGetContact", { id: 2n }],
  ["crmGetContact", { id: 99n }],
  ["crmCounts"],
  ...Array.from({ length: 9 }, (_, op): Call => ["benchLoop", { op, iters: 20 }]),
];

it.each([
  ["ycsb", "ycsb-a", ycsb, ycsbCalls],
  ["content", "content-crud", content, contentCalls],
  ["jobs", "job-queue", jobs, jobsCalls],
  ["notes", "data-layer", notes, [...noteCalls, ...customerCalls]],
])(
  "%s",
  async (_name, test, bindings: Bindings, calls) => {
    const called = new Set(calls.map(([name]) => name));
    const functions = [...Object.keys(bindings.reducers), ...Object.keys(bindings.procedures)];
    expect([...called].sort()).toEqual(functions.sort());

    const expected = await answers("spacetimedb", test, calls, bindings);
    expect(expected.some((answer) => (answer as unknown[])[1] !== "refused")).toBe(true);
    expect(await answers("spacetimedb_rust", test, calls, bindings)).toEqual(expected);
  },
  180_000,
);
