// data-layer-crm (section 18.2): five tables that refer to each other; one client, one operation at a time.

import type { Config } from "../../config";
import type { Connector } from "../../connectors/connector";
import { type Done, type Step, serialRun } from "../data_layer/serial";
import { operationsOn } from "../per_connection";
import type { RunOperation, SystemUnderTest, Verdict, Workload } from "../workload";
import {
  type Counts,
  type CrmStore,
  type NewCompany,
  type NewContact,
  type NewDeal,
  type NewLead,
  type SeedSize,
  seedData,
} from "./store";

export const seedSize: SeedSize = { companies: 100, contacts: 1_000, leads: 5_000 };
const contactsPerCompany = seedSize.contacts / seedSize.companies;
const leadsPerCall = 50;
const pageRows = 20;
const wantedStatus = "qualified";

const companyId = (iteration: number) => 1 + (iteration % seedSize.companies);
const contactId = (iteration: number) => 1 + (iteration % seedSize.contacts);

const company = (iteration: number): NewCompany => ({
  name: `Created ${iteration}`,
  domain: `created-${iteration}.example`,
  industry: "retail",
  size: 10 + iteration,
  website: `https://created-${iteration}.example`,
  phone: "+1 555 0102",
  status: "active",
});

const contact = (iteration: number): NewContact => ({
  firstName: "Created",
  lastName: `Contact ${iteration}`,
  email: `created-${iteration}@company.example`,
  phone: "+1 555 0103",
  title: "Manager",
  companyId: companyId(iteration),
});

const lead = (iteration: number): NewLead => ({
  title: `Created lead ${iteration}`,
  source: "fair",
  status: "new",
  value: 100 * iteration,
  companyId: companyId(iteration),
  contactId: contactId(iteration),
});

const deal = (iteration: number): NewDeal => ({
  title: `Deal ${iteration}`,
  stage: "open",
  amount: 10_000 + iteration,
  companyId: companyId(iteration),
  contactId: contactId(iteration),
  closeAt: Date.UTC(2030, 0, 1),
});

const findLeads = { status: wantedStatus, limit: pageRows };

/** Reads come first, while every company has the contacts that it was given at the beginning. */
const steps: readonly Step[] = [
  { kind: "find_many_lead", rows: 1, events: 0, args: () => findLeads, loopOperation: 5 },
  {
    kind: "find_many_contact",
    rows: 1,
    events: 0,
    args: (iteration) => ({ companyId: companyId(iteration * 7), limit: pageRows }),
    loopOperation: 6,
  },
  {
    kind: "find_unique_contact",
    rows: 1,
    events: 0,
    args: (iteration) => ({ id: contactId(iteration * 7) }),
    loopOperation: 7,
  },
  { kind: "create_company", rows: 1, events: 1, args: (iteration) => ({ company: company(iteration) }) },
  { kind: "create_contact", rows: 1, events: 1, args: (iteration) => ({ contact: contact(iteration) }) },
  {
    kind: "create_many_lead",
    rows: leadsPerCall,
    events: leadsPerCall,
    args: (iteration) => ({
      leads: Array.from({ length: leadsPerCall }, (_, row) => lead(iteration * leadsPerCall + row)),
    }),
  },
  { kind: "mixed", rows: 1, events: 1, args: (iteration) => ({ deal: deal(iteration), ...findLeads }) },
];

const hasLeads = async (store: CrmStore, args: Record<string, unknown>): Promise<boolean> => {
  const { status, limit } = args as typeof findLeads;
  const leads = await store.findLeads(status, limit);
  return leads.length === limit && leads.every((found) => found.status === status);
};

/** Operations on a store, each of which looks at its answer. */
export function crmOps(storeOf: (connection: Connector) => CrmStore): Record<string, RunOperation> {
  const { write, read, find } = operationsOn(storeOf);
  return {
    seed: write((store) => store.seed(seedData(seedSize))),
    find_many_lead: read("leads", hasLeads),
    find_many_contact: read("contacts of a company", async (store, args) => {
      const wanted = Number(args["companyId"]);
      const contacts = await store.findContacts(wanted, Number(args["limit"]));
      const isOfWanted = contacts.every((found) => found.companyId === wanted);
      return contacts.length === contactsPerCompany && isOfWanted;
    }),
    find_unique_contact: read("a contact", async (store, { id }) => {
      const found = await store.getContact(Number(id));
      return found?.id === id && found?.lastName === `Last ${Number(id) - 1}`;
    }),
    create_company: write((store, args) => store.createCompany(args["company"] as NewCompany)),
    create_contact: write((store, args) => store.createContact(args["contact"] as NewContact)),
    create_many_lead: write((store, args) => store.createLeads(args["leads"] as NewLead[])),
    mixed: read("leads", async (store, args) => {
      await store.createDeal(args["deal"] as NewDeal);
      return hasLeads(store, args);
    }),
    counts: find((store) => store.counts()),
    check_activity: write((store, args) => {
      const none = { subject: "verification", body: "", dealId: 1, contactId: 1, done: false };
      return store.createActivity({ kind: String(args["kind"]), ...none });
    }),
  };
}

/** Writes that must be refused, each for one reason. */
const refused: [what: string, kind: string, args: Record<string, unknown>][] = [
  ["a contact of no company", "create_contact", { contact: { ...contact(0), companyId: 999_999 } }],
  ["a lead of no contact", "create_many_lead", { leads: [lead(0), { ...lead(1), contactId: 999_999 }] }],
  ["a lead with an unknown status", "create_many_lead", { leads: [{ ...lead(0), status: "maybe" }] }],
  ["a company with an unknown status", "create_company", { company: { ...company(0), status: "maybe" } }],
  ["a deal at an unknown stage", "mixed", { deal: { ...deal(0), stage: "maybe" }, ...findLeads }],
  ["an activity of an unknown kind", "check_activity", { kind: "maybe" }],
];

const textOf = (counts: Counts) =>
  Object.entries(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");

async function verify({ run }: SystemUnderTest, { events, operations }: Done): Promise<Verdict> {
  const done = (kind: string) => operations.get(kind) ?? 0;
  for (const [what, kind, args] of refused) {
    const isAccepted = await run(kind, args).then(
      () => true,
      () => false,
    );
    if (isAccepted) return { ok: false, message: `${what} was accepted` };
  }
  await run("check_activity", { kind: "call" });
  const expected: Counts = {
    companies: seedSize.companies + done("create_company"),
    contacts: seedSize.contacts + done("create_contact"),
    leads: seedSize.leads + leadsPerCall * done("create_many_lead"),
    deals: done("mixed"),
    activities: 1,
    events: events + 1,
  };
  const found = (await run("counts")).found as Counts;
  const isRight = Object.entries(expected).every(([name, count]) => found[name as keyof Counts] === count);
  const message = isRight ? textOf(expected) : `there are ${textOf(found)} instead of ${textOf(expected)}`;
  return { ok: isRight, message };
}

const rowsOfSeed = seedSize.companies + seedSize.contacts + seedSize.leads;

export const dataLayerCrmWorkload: Workload = {
  name: "data-layer-crm",
  samples: 1,
  runs: (config: Config) => [
    {
      label: "one operation at a time",
      create: () => serialRun({ config, steps, rows: rowsOfSeed, verify }),
    },
  ],
};
