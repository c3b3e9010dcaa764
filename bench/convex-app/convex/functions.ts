// Functions that know the types of this app's tables, without generated code.

import {
  type DataModelFromSchemaDefinition,
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

/** An account by its number; null where there is none. */
export const accountOf = (database: GenericQueryCtx<DataModel>["db"], id: number) =>
  database
    .query("accounts")
    .withIndex("by_account_id", (range) => range.eq("id", id))
    .unique();
