// The customers on the module `notes-ts`: every operation is a round trip to the server.

import type { Connector } from "../../connectors/connector";
import type { Contact, Counts, CrmStore, Lead } from "./store";

/** The lowest ids on the server. Those of the workload begin at 1: the server's follow them at a distance. */
interface First {
  company: bigint;
  contact: bigint;
  deal: bigint;
}

/** Whole numbers of 64 bits come as bigint. */
type Row<T> = { [K in keyof T]: T[K] extends number ? bigint : T[K] };

export function sdkCrm(connection: Connector, timestampOf: (microseconds: bigint) => unknown): CrmStore {
  let first: Promise<First> | undefined;
  const firsts = () => (first ??= connection.call("crmFirst") as Promise<First>);
  const idOf = async (table: keyof First, id: number) => BigInt(id) + (await firsts())[table] - 1n;
  const numberOf = async (table: keyof First, id: bigint) => Number(id - (await firsts())[table] + 1n);
  const call = async (name: string, args: Record<string, unknown> = {}): Promise<void> => {
    await connection.call(name, args);
  };
  const references = async ({ companyId, contactId }: { companyId: number; contactId: number }) => ({
    companyId: await idOf("company", companyId),
    contactId: await idOf("contact", contactId),
  });
  const contactOf = async (row: Row<Contact>): Promise<Contact> => ({
    ...row,
    id: await numberOf("contact", row.id),
    companyId: await numberOf("company", row.companyId),
  });
  const leadOf = async (row: Row<Lead>): Promise<Lead> => ({
    ...row,
    id: Number(row.id),
    value: Number(row.value),
    companyId: await numberOf("company", row.companyId),
    contactId: await numberOf("contact", row.contactId),
  });
  return {
    async seed({ companies, contacts, leads }) {
      const size = { companies: companies.length, contacts: contacts.length, leads: leads.length };
      await call("crmSeed", size);
      first = undefined;
    },
    createCompany: (company) => call("crmCreateCompany", { ...company }),
    createContact: async (contact) =>
      call("crmCreateContact", { ...contact, companyId: await idOf("company", contact.companyId) }),
    async createLeads(leads) {
      const rows = leads.map(async (lead) => ({
        ...lead,
        value: BigInt(lead.value),
        ...(await references(lead)),
      }));
      await call("crmCreateLeads", { leads: await Promise.all(rows) });
    },
    createDeal: async (deal) =>
      call("crmCreateDeal", {
        ...deal,
        amount: BigInt(deal.amount),
        closeAt: timestampOf(BigInt(deal.closeAt) * 1000n),
        ...(await references(deal)),
      }),
    async createActivity(activity) {
      // The first deal is there only now.
      first = undefined;
      const dealId = await idOf("deal", activity.dealId);
      await call("crmCreateActivity", {
        ...activity,
        dealId,
        contactId: await idOf("contact", activity.contactId),
      });
    },
    findLeads: async (status, limit) =>
      Promise.all(((await connection.call("crmFindLeads", { status, limit })) as Row<Lead>[]).map(leadOf)),
    async findContacts(companyId, limit) {
      const args = { companyId: await idOf("company", companyId), limit };
      return Promise.all(((await connection.call("crmFindContacts", args)) as Row<Contact>[]).map(contactOf));
    },
    async getContact(id) {
      const row = await connection.call("crmGetContact", { id: await idOf("contact", id) });
      return row === undefined || row === null ? undefined : contactOf(row as Row<Contact>);
    },
    async counts() {
      const counts = (await connection.call("crmCounts")) as Row<Counts>;
      return Object.fromEntries(
        Object.entries(counts).map(([name, count]) => [name, Number(count)]),
      ) as unknown as Counts;
    },
  };
}
