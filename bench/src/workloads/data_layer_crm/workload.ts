// data-layer-crm (section 18.2): five tables that refer to each other; one client, one operation at a time.

import type { Config } from "../../config";
import type { CallArguments, Connector } from "../../connectors/connector";
import type { Contact, Counts, Lead, New, SeedSize } from "../../rpc-servers/crm/store";
import { type Ask, callsBy, done, found, right } from "../calls";
import { type Done, read, type Step, serialRun, write } from "../data_layer/serial";
import type { RunOperation, SystemUnderTest, Verdict, Workload } from "../workload";

export const seedSize: SeedSize = { companies: 100, contacts: 1_000, leads: 5_000 };
const contactsPerCompany = seedSize.contacts / seedSize.companies;
const leadsPerCall = 50;
const pageRows = 20;
const wantedStatus = "qualified";

const companyId = (iteration: number) => 1 + (iteration % seedSize.companies);
const contactId = (iteration: number) => 1 + (iteration % seedSize.contacts);

const company = (iteration: number): New<"company"> => ({
  name: `Created ${iteration}`,
  domain: `created-${iteration}.example`,
  industry: "retail",
  size: 10 + iteration,
  website: `https://created-${iteration}.example`,
  phone: "+1 555 0102",
  status: "active",
});

const contact = (iteration: number): New<"contact"> => ({
  firstName: "Created",
  lastName: `Contact ${iteration}`,
  email: `created-${iteration}@company.example`,
  phone: "+1 555 0103",
  title: "Manager",
  companyId: companyId(iteration),
});

const lead = (iteration: number): New<"lead"> => ({
  title: `Created lead ${iteration}`,
  source: "fair",
  status: "new",
  value: 100 * iteration,
  companyId: companyId(iteration),
  contactId: contactId(iteration),
});

const deal = (iteration: number): New<"deal"> => ({
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
  read("find_many_lead", () => findLeads, 5),
  read("find_many_contact", (iteration) => ({ companyId: companyId(iteration * 7), limit: pageRows }), 6),
  read("find_unique_contact", (iteration) => ({ id: contactId(iteration * 7) }), 7),
  write("create_company", (iteration) => ({ company: company(iteration) })),
  write("create_contact", (iteration) => ({ contact: contact(iteration) })),
  {
    kind: "create_many_lead",
    rows: leadsPerCall,
    events: leadsPerCall,
    args: (iteration) => ({
      leads: Array.from({ length: leadsPerCall }, (_, row) => lead(iteration * leadsPerCall + row)),
    }),
  },
  write("mixed", (iteration) => ({ deal: deal(iteration), ...findLeads })),
];

const areLeads = right<Lead[]>(
  "leads",
  (leads, { status, limit }) => leads.length === limit && leads.every((found) => found.status === status),
);
const wanted = ({ status, limit }: CallArguments) => ({ status, limit });

/** Each looks at its answer. */
export function crmOps(askOf: (connection: Connector) => Ask): Record<string, RunOperation> {
  const call = callsBy(askOf);
  const none = { subject: "verification", body: "", dealId: 1, contactId: 1, done: false };
  const createDeal = call("crm_create_deal", done, ({ deal }) => deal as CallArguments);
  const findLeads = call("crm_find_leads", areLeads, wanted);
  return {
    seed: call("crm_seed", done, () => ({ ...seedSize })),
    find_many_lead: findLeads,
    find_many_contact: call(
      "crm_find_contacts",
      right<Contact[]>("contacts of a company", (contacts, { companyId }) => {
        const areOfWanted = contacts.every((found) => found.companyId === companyId);
        return contacts.length === contactsPerCompany && areOfWanted;
      }),
    ),
    find_unique_contact: call(
      "crm_get_contact",
      right<Contact | null | undefined>("a contact", (found, { id }) => {
        return found?.id === id && found?.lastName === `Last ${Number(id) - 1}`;
      }),
    ),
    create_company: call("crm_create_company", done, ({ company }) => company as CallArguments),
    create_contact: call("crm_create_contact", done, ({ contact }) => contact as CallArguments),
    create_many_lead: call("crm_create_leads"),
    async mixed(connection, args) {
      await createDeal(connection, args);
      return findLeads(connection, args);
    },
    counts: call("crm_counts", found),
    check_activity: call("crm_create_activity", done, ({ kind }) => ({ kind, ...none })),
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

const textOf = (counts: Record<keyof Counts, number | bigint>) =>
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
  const counted = (await run("counts")).found as Record<keyof Counts, number | bigint>;
  const isRight = Object.entries(expected).every(
    ([name, count]) => Number(counted[name as keyof Counts]) === count,
  );
  const message = isRight ? textOf(expected) : `there are ${textOf(counted)} instead of ${textOf(expected)}`;
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
