// Companies, contacts, leads, deals and activities (section 18.2 of the benchmark chapter). Every write checks what it
// refers to and the values of its enumerations, and appends to the log in the same transaction.

import { SenderError, t } from "lightcone/server";
import { contactById, contactsOfCompany, leadsByStatus, lowestIds } from "./crm_reads";
import spacetimedb, { benchCrmContact, benchCrmLead, type Context, log } from "./schema";

const COMPANY_STATUSES = ["active", "inactive"];
const LEAD_STATUSES = ["new", "contacted", "qualified", "lost"];
const DEAL_STAGES = ["open", "won", "lost"];
const ACTIVITY_KINDS = ["call", "email", "meeting", "task"];

const Lead = t.object("Lead", {
  title: t.string(),
  source: t.string(),
  status: t.string(),
  value: t.u64(),
  companyId: t.u64(),
  contactId: t.u64(),
});

const Ids = t.object("CrmIds", { company: t.u64(), contact: t.u64(), deal: t.u64() });

const Counts = t.object("CrmCounts", {
  companies: t.u64(),
  contacts: t.u64(),
  leads: t.u64(),
  deals: t.u64(),
  activities: t.u64(),
  events: t.u64(),
});

function checkEnumeration(field: string, value: string, values: readonly string[]): void {
  if (!values.includes(value)) throw new SenderError(`${field} is ${values.join(", ")}, not ${value}`);
}

function checkCompany(ctx: Context, id: bigint): void {
  if (ctx.db.benchCrmCompany.id.find(id) === null) throw new SenderError(`there is no company ${id}`);
}

function checkContact(ctx: Context, id: bigint): void {
  if (ctx.db.benchCrmContact.id.find(id) === null) throw new SenderError(`there is no contact ${id}`);
}

function checkDeal(ctx: Context, id: bigint): void {
  if (ctx.db.benchCrmDeal.id.find(id) === null) throw new SenderError(`there is no deal ${id}`);
}

interface NewLead {
  title: string;
  source: string;
  status: string;
  value: bigint;
  companyId: bigint;
  contactId: bigint;
}

function insertLead(ctx: Context, lead: NewLead): bigint {
  checkEnumeration("status", lead.status, LEAD_STATUSES);
  checkCompany(ctx, lead.companyId);
  checkContact(ctx, lead.contactId);
  return ctx.db.benchCrmLead.insert({ id: 0n, ...lead, createdAt: ctx.timestamp }).id;
}

/** Replaces everything, the log too. Contacts go to companies in turn, leads to contacts, and statuses to leads. */
export const crmSeed = spacetimedb.reducer(
  { companies: t.u32(), contacts: t.u32(), leads: t.u32() },
  (ctx, { companies, contacts, leads }) => {
    const { benchCrmCompany, benchCrmContact, benchCrmLead, benchCrmDeal, benchCrmActivity, eventLog } = ctx.db;
    for (const rows of [benchCrmActivity, benchCrmDeal, benchCrmLead, benchCrmContact, benchCrmCompany, eventLog]) {
      rows.clear();
    }
    const companyIds = Array.from({ length: companies }, (_, index) => {
      const domain = `company-${index}.example`;
      const company = { domain, industry: "software", size: index, website: `https://${domain}`, phone: "+1 555 0100" };
      const row = { id: 0n, name: `Company ${index}`, ...company, status: "active", createdAt: ctx.timestamp };
      return benchCrmCompany.insert(row).id;
    });
    const contactIds = Array.from({ length: contacts }, (_, index) => {
      const lastName = `Last ${index}`;
      const contact = { firstName: "First", lastName, email: `contact-${index}@company.example`, phone: "+1 555 0101" };
      const companyId = companyIds[index % companies]!;
      const row = { id: 0n, ...contact, title: "Engineer", companyId, createdAt: ctx.timestamp };
      return benchCrmContact.insert(row).id;
    });
    for (let index = 0; index < leads; index++) {
      insertLead(ctx, {
        title: `Lead ${index}`,
        source: "web",
        status: LEAD_STATUSES[index % LEAD_STATUSES.length]!,
        value: BigInt(index) * 100n,
        companyId: companyIds[(index % contacts) % companies]!,
        contactId: contactIds[index % contacts]!,
      });
    }
  },
);

export const crmCreateCompany = spacetimedb.reducer(
  {
    name: t.string(),
    domain: t.string(),
    industry: t.string(),
    size: t.u32(),
    website: t.string(),
    phone: t.string(),
    status: t.string(),
  },
  (ctx, company) => {
    checkEnumeration("status", company.status, COMPANY_STATUSES);
    const { id } = ctx.db.benchCrmCompany.insert({ id: 0n, ...company, createdAt: ctx.timestamp });
    log(ctx, "company", "create", id, company.name);
  },
);

export const crmCreateContact = spacetimedb.reducer(
  {
    firstName: t.string(),
    lastName: t.string(),
    email: t.string(),
    phone: t.string(),
    title: t.string(),
    companyId: t.u64(),
  },
  (ctx, contact) => {
    checkCompany(ctx, contact.companyId);
    const { id } = ctx.db.benchCrmContact.insert({ id: 0n, ...contact, createdAt: ctx.timestamp });
    log(ctx, "contact", "create", id, contact.email);
  },
);

/** All or none, with an entry of the log for each. */
export const crmCreateLeads = spacetimedb.reducer({ leads: t.array(Lead) }, (ctx, { leads }) => {
  for (const lead of leads) log(ctx, "lead", "create", insertLead(ctx, lead), lead.title);
});

export const crmCreateDeal = spacetimedb.reducer(
  {
    title: t.string(),
    stage: t.string(),
    amount: t.u64(),
    companyId: t.u64(),
    contactId: t.u64(),
    closeAt: t.timestamp(),
  },
  (ctx, deal) => {
    checkEnumeration("stage", deal.stage, DEAL_STAGES);
    checkCompany(ctx, deal.companyId);
    checkContact(ctx, deal.contactId);
    const { id } = ctx.db.benchCrmDeal.insert({ id: 0n, ...deal, createdAt: ctx.timestamp });
    log(ctx, "deal", "create", id, deal.title);
  },
);

export const crmCreateActivity = spacetimedb.reducer(
  {
    kind: t.string(),
    subject: t.string(),
    body: t.string(),
    dealId: t.u64(),
    contactId: t.u64(),
    done: t.bool(),
  },
  (ctx, activity) => {
    checkEnumeration("kind", activity.kind, ACTIVITY_KINDS);
    checkDeal(ctx, activity.dealId);
    checkContact(ctx, activity.contactId);
    const { id } = ctx.db.benchCrmActivity.insert({ id: 0n, ...activity, createdAt: ctx.timestamp });
    log(ctx, "activity", "create", id, activity.subject);
  },
);

export const crmFindLeads = spacetimedb.procedure(
  { status: t.string(), limit: t.u32() },
  t.array(benchCrmLead.rowType),
  (ctx, { status, limit }) => ctx.withTx((tx) => leadsByStatus(tx, status, limit)),
);

export const crmFindContacts = spacetimedb.procedure(
  { companyId: t.u64(), limit: t.u32() },
  t.array(benchCrmContact.rowType),
  (ctx, { companyId, limit }) => ctx.withTx((tx) => contactsOfCompany(tx, companyId, limit)),
);

export const crmGetContact = spacetimedb.procedure({ id: t.u64() }, t.option(benchCrmContact.rowType), (ctx, { id }) =>
  ctx.withTx((tx) => contactById(tx, id)),
);

export const crmFirst = spacetimedb.procedure({}, Ids, (ctx) => ctx.withTx(lowestIds));

export const crmCounts = spacetimedb.procedure({}, Counts, (ctx) =>
  ctx.withTx(({ db }) => ({
    companies: db.benchCrmCompany.count(),
    contacts: db.benchCrmContact.count(),
    leads: db.benchCrmLead.count(),
    deals: db.benchCrmDeal.count(),
    activities: db.benchCrmActivity.count(),
    events: db.eventLog.count(),
  })),
);
