// The operations of data-layer-crm, by the ways of asking: RPC methods, and the modules `notes-ts` and `notes-rs`.

import type { CallArguments } from "../../connectors/connector";
import { SdkConnector } from "../../connectors/sdk_connector";
import { type CrmTable, columnsOf } from "../../rpc-servers/crm/store";
import { type Ask, call, connectionItself, found, perConnection } from "../calls";
import { crmOps } from "./workload";

/** The lowest ids on the server. Those of the workload begin at 1: the server's follow them at a distance. */
type First = Record<"company" | "contact" | "deal", bigint>;
type Row = Record<string, unknown>;

/** The table of the rows that a function takes or answers. */
const tables: Record<string, CrmTable> = {
  ...{ crm_create_company: "company", crm_create_contact: "contact", crm_create_deal: "deal" },
  ...{ crm_create_activity: "activity", crm_create_leads: "lead", crm_find_leads: "lead" },
  ...{ crm_find_contacts: "contact", crm_get_contact: "contact" },
};

/** `company` for `companyId`. */
const referredBy = (column: string) => column.replace(/Id$/, "") as keyof First;

/** Every operation is a round trip to the server. */
const sdkCrm = perConnection((connection): Ask => {
  if (!(connection instanceof SdkConnector)) throw new Error(`${connection.name} has no SDK`);
  let first: Promise<First> | undefined;
  const firsts = () => (first ??= connection.call("crm_first") as Promise<First>);

  /** The columns of a row as the module takes them. */
  const sentOf = async (table: CrmTable, row: Row): Promise<Row> => {
    const sent: Row = {};
    for (const [name, kind] of columnsOf(table)) {
      const value = row[name] as number;
      if (kind === "reference") sent[name] = BigInt(value) + (await firsts())[referredBy(name)] - 1n;
      else if (kind === "money") sent[name] = BigInt(value);
      else if (kind === "time") sent[name] = connection.timestamp(BigInt(value) * 1000n);
      else sent[name] = value;
    }
    return sent;
  };
  const argumentsOf = async (name: string, args: CallArguments): Promise<CallArguments> => {
    const of = async (column: keyof First, id: unknown) =>
      BigInt(id as number) + (await firsts())[column] - 1n;
    const { leads, companyId, id, ...rest } = args;
    if (name === "crm_create_leads")
      return { leads: await Promise.all((leads as Row[]).map((row) => sentOf("lead", row))) };
    if (name.startsWith("crm_create_")) return sentOf(tables[name]!, args);
    if (companyId !== undefined) return { ...rest, companyId: await of("company", companyId) };
    return id === undefined ? args : { ...rest, id: await of("contact", id) };
  };
  const rowOf = async (table: CrmTable, row: Row): Promise<Row> => {
    const own: Row = { ...row, id: Number(row["id"]) };
    if (table === "contact") own["id"] = Number((row["id"] as bigint) - (await firsts()).contact + 1n);
    for (const [name, kind] of columnsOf(table)) {
      const value = row[name] as bigint;
      if (kind === "reference") own[name] = Number(value - (await firsts())[referredBy(name)] + 1n);
      else if (kind === "money") own[name] = Number(value);
    }
    return own;
  };

  return async (name, args) => {
    // The first deal is there only now.
    if (name === "crm_create_activity") first = undefined;
    const answer = await connection.call(name, await argumentsOf(name, args));
    if (name === "crm_seed") first = undefined;
    const table = tables[name];
    if (Array.isArray(answer) && table) return Promise.all((answer as Row[]).map((row) => rowOf(table, row)));
    return name === "crm_get_contact" && answer ? rowOf("contact", answer as Row) : answer;
  };
});

export const crmRpcOps = crmOps(connectionItself);
export const crmSdkOps = { ...crmOps(sdkCrm), bench_loop: call("bench_loop", found) };
