// data-layer-crm behind `POST /rpc`, and through an ORM without HTTP.

import type { Connector } from "../../connectors/connector";
import { poolOf } from "../../connectors/postgres_direct";
import { postgresDrizzleCrm } from "../../rpc-servers/crm/postgres_store";
import { drizzleDirect } from "../data_layer/rpc_cases";
import { perConnection } from "../per_connection";
import type { WorkloadCase } from "../workload";
import type { Contact, Counts, CrmStore, Lead } from "./store";
import { crmOps } from "./workload";

function rpcCrm(connection: Connector): CrmStore {
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

const rpcCase = (system: string, label: string): WorkloadCase => ({
  system,
  label,
  ops: crmOps(perConnection(rpcCrm)),
});

export const postgresRpcCrm = rpcCase("postgres_rpc", "Node.js + Postgres");
export const sqliteRpcCrm = rpcCase("sqlite_rpc", "Node.js + SQLite");
export const bunCrm = rpcCase("bun", "Bun + Postgres");

export const postgresDrizzleCrmCase: WorkloadCase = {
  system: "postgres_drizzle_direct",
  label: "Drizzle + node-postgres",
  ops: crmOps(perConnection((connection) => postgresDrizzleCrm(poolOf(connection)))),
  definition: drizzleDirect,
};
