// content-crud with this repository's SDK on both sides: reducers, and a procedure to read (section 16.3). A server
// without procedures is read by queries.

import { DbConnection } from "../../../bindings/content-lightcone";
import type { Connector } from "../../connectors/connector";
import { WorkloadSdkConnector } from "../../connectors/workload_sdk_connector";
import { sdkDefinition } from "../sdk_definition";
import type { WorkloadCase } from "../workload";
import { ulid } from "./ulid";
import { type Content, type ContentClient, contentOps } from "./workload";

async function find(connection: Connector, id: string): Promise<Partial<Content> | null> {
  if (!(connection instanceof WorkloadSdkConnector))
    throw new Error(`${connection.name} is no connection of an SDK`);
  const row = (await connection.hasProcedures("contentCount"))
    ? await connection.call("contentGet", { id })
    : (await connection.query(`SELECT * FROM content WHERE id = '${id}'`))[0];
  return (row as Partial<Content> | undefined) ?? null;
}

const client: ContentClient = {
  async create(connection, { data, ...content }) {
    const id = ulid();
    const text = data === undefined ? undefined : JSON.stringify(data);
    await connection.call("contentCreate", { ...content, id, data: text });
    return id;
  },
  read: find,
  async update(connection, id, change) {
    await connection.call("contentUpdate", { id, ...change });
  },
  async delete(connection, id) {
    await connection.call("contentDelete", { id });
  },
  async clear(connection) {
    await connection.call("contentClear");
  },
};

export const lightconeContent: WorkloadCase = {
  system: "lightcone",
  label: "Lightcone, TypeScript module",
  ops: contentOps(client),
  definition: sdkDefinition({
    key: "lightcone",
    modulePath: "../modules/content-ts",
    database: "content",
    builder: () => DbConnection.builder(),
  }),
};
