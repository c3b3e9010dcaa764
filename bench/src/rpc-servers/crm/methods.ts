// The RPC methods of data-layer-crm (section 18.2). What refers to nothing and unknown enumerations are refused by the
// database.

import {
  type CrmStore,
  type NewActivity,
  type NewCompany,
  type NewContact,
  type NewDeal,
  type NewLead,
  type SeedSize,
  seedData,
} from "../../workloads/data_layer_crm/store";
import { BadArguments, type RpcArguments, type RpcMethods } from "../rpc";

const rowsPerCallMax = 10_000;

type Kind = "string" | "number" | "boolean";
/** The types of the properties of a row. */
type Shape<T> = {
  [K in keyof T]: T[K] extends string ? "string" : T[K] extends number ? "number" : "boolean";
};

/** A row of known properties, each of its type. */
function rowOf<T>(value: unknown, shape: Shape<T>): T {
  const given = (value ?? {}) as RpcArguments;
  const row: RpcArguments = {};
  for (const [name, kind] of Object.entries(shape) as [string, Kind][]) {
    const property = given[name];
    const isRight = kind === "number" ? Number.isSafeInteger(property) : typeof property === kind;
    if (!isRight) throw new BadArguments(`invalid ${name}`);
    row[name] = property;
  }
  return row as T;
}

const company: Shape<NewCompany> = {
  name: "string",
  domain: "string",
  industry: "string",
  size: "number",
  website: "string",
  phone: "string",
  status: "string",
};
const contact: Shape<NewContact> = {
  firstName: "string",
  lastName: "string",
  email: "string",
  phone: "string",
  title: "string",
  companyId: "number",
};
const lead: Shape<NewLead> = {
  title: "string",
  source: "string",
  status: "string",
  value: "number",
  companyId: "number",
  contactId: "number",
};
const deal: Shape<NewDeal> = {
  title: "string",
  stage: "string",
  amount: "number",
  companyId: "number",
  contactId: "number",
  closeAt: "number",
};
const activity: Shape<NewActivity> = {
  kind: "string",
  subject: "string",
  body: "string",
  dealId: "number",
  contactId: "number",
  done: "boolean",
};

function limitOf(args: RpcArguments): number {
  const limit = Number(args["limit"]);
  if (!Number.isInteger(limit) || limit < 0 || limit > rowsPerCallMax)
    throw new BadArguments("invalid limit");
  return limit;
}

export function crmMethods(store: CrmStore): RpcMethods {
  return {
    crm_seed: (args) =>
      store.seed(
        seedData(rowOf<SeedSize>(args, { companies: "number", contacts: "number", leads: "number" })),
      ),
    crm_create_company: (args) => store.createCompany(rowOf(args, company)),
    crm_create_contact: (args) => store.createContact(rowOf(args, contact)),
    crm_create_leads(args) {
      const leads = args["leads"];
      if (!Array.isArray(leads) || leads.length > rowsPerCallMax) throw new BadArguments("invalid leads");
      return store.createLeads(leads.map((row) => rowOf(row, lead)));
    },
    crm_create_deal: (args) => store.createDeal(rowOf(args, deal)),
    crm_create_activity: (args) => store.createActivity(rowOf(args, activity)),
    crm_find_leads: (args) => {
      const { status } = rowOf<{ status: string }>(args, { status: "string" });
      return store.findLeads(status, limitOf(args));
    },
    crm_find_contacts: (args) => {
      const { companyId } = rowOf<{ companyId: number }>(args, { companyId: "number" });
      return store.findContacts(companyId, limitOf(args));
    },
    crm_get_contact: async (args) =>
      (await store.getContact(rowOf<{ id: number }>(args, { id: "number" }).id)) ?? null,
    crm_counts: () => store.counts(),
  };
}
