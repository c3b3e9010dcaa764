// Functions that know the types of this app's tables, without generated code.

import {
  type DataModelFromSchemaDefinition,
  type GenericMutationCtx,
  type GenericQueryCtx,
  type MutationBuilder,
  mutationGeneric,
  type QueryBuilder,
  queryGeneric,
} from "convex/server";
import type schema from "./schema";

export type DataModel = DataModelFromSchemaDefinition<typeof schema>;

export const query = queryGeneric as QueryBuilder<DataModel, "public">;
export const mutation = mutationGeneric as MutationBuilder<DataModel, "public">;

export type Database = GenericQueryCtx<DataModel>["db"];
export type WritableDatabase = GenericMutationCtx<DataModel>["db"];

/** An account by its number; null where there is none. */
export const accountOf = (database: Database, id: number) =>
  database
    .query("accounts")
    .withIndex("by_account_id", (range) => range.eq("id", id))
    .unique();
