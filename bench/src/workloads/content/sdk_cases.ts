// content-crud on the modules `content-ts` and `content-rs`, by a client SDK: reducers, and a procedure to read
// (section 16.3).

import { DbConnection as LightconeConnection } from "../../../bindings/content-lightcone";
import { DbConnection as SpacetimedbConnection } from "../../../bindings/content-spacetimedb";
import { sdkDefinition } from "../sdk_definition";
import type { WorkloadCase } from "../workload";
import { ulid } from "./ulid";
import { type Content, type ContentClient, contentOps } from "./workload";

const client: ContentClient = {
  async create(connection, { data, ...content }) {
    const id = ulid();
    const text = data === undefined ? undefined : JSON.stringify(data);
    await connection.call("contentCreate", { ...content, id, data: text });
    return id;
  },
  async read(connection, id) {
    return ((await connection.call("contentGet", { id })) as Partial<Content> | undefined) ?? null;
  },
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

const shared = { module: "content", neededProcedure: "contentCount" };

export const lightconeContent: WorkloadCase = {
  system: "lightcone",
  label: "Lightcone, TypeScript module",
  ops: contentOps(client),
  definition: sdkDefinition({ key: "lightcone", ...shared, builder: () => LightconeConnection.builder() }),
};

export const spacetimedbContent: WorkloadCase = {
  system: "spacetimedb",
  label: "npm client, TypeScript module",
  ops: contentOps(client),
  definition: sdkDefinition({
    key: "spacetimedb",
    ...shared,
    builder: () => SpacetimedbConnection.builder(),
  }),
};

export const rustContent: WorkloadCase = {
  system: "spacetimedb_rust",
  label: "npm client, Rust module",
  ops: contentOps(client),
  definition: sdkDefinition({
    key: "spacetimedb_rust",
    ...shared,
    builder: () => SpacetimedbConnection.builder(),
  }),
};
