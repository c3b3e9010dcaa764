// The customers behind `POST /rpc`.

import type { Connector } from "../../connectors/connector";
import type { Contact, Counts, CrmStore, Lead } from "./store";

export function rpcCrm(connection: Connector): CrmStore {
  const call = async (name: string, args: object): Promise<void> => {
    await connection.call(name, { ...args });
  };
  return {
    seed: ({ companies, contacts, leads }) =>
      call("crm_seed", { companies: companies.length, contacts: contacts.length, leads: leads.length }),
    createCompany: (company) => call("crm_create_company", company),
    createContact: (contact) => call("crm_create_contact", contact),
    createLeads: (leads) => call("crm_create_leads", { leads }),
    createDeal: (deal) => call("crm_create_deal", deal),
    createActivity: (activity) => call("crm_create_activity", activity),
    findLeads: async (status, limit) =>
      (await connection.call("crm_find_leads", { status, limit })) as Lead[],
    findContacts: async (companyId, limit) =>
      (await connection.call("crm_find_contacts", { companyId, limit })) as Contact[],
    getContact: async (id) =>
      ((await connection.call("crm_get_contact", { id })) as Contact | null) ?? undefined,
    counts: async () => (await connection.call("crm_counts")) as Counts,
  };
}
