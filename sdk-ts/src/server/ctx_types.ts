import type { ConnectionId } from "../core/connection_id";
import type { Identity } from "../core/identity";
import type { UntypedSchemaDef } from "../core/schema";
import type { ReadonlyTable, Table } from "../core/table";
import type { Timestamp } from "../core/timestamp";
import type { ColumnBuilder, TypeBuilder } from "../core/type_builders";
import type { InferTypeOfRow } from "../core/type_inference";
import type { Values } from "../core/type_util";
import type { Uuid } from "../core/uuid";
import type { Random } from "./random";

/** Parameters of a function: a type for each name. */
export type ParamsObj = Record<string, TypeBuilder<any, any> | ColumnBuilder<any, any, any>>;
export type ParamsAsObject<ParamDef extends ParamsObj> = InferTypeOfRow<ParamDef>;

/** The tables of a module, for a function that may change them. */
export type DbView<SchemaDef extends UntypedSchemaDef> = {
  readonly [Tbl in Values<SchemaDef["tables"]> as Tbl["accessorName"]]: Table<Tbl>;
} & (SchemaDef extends { namespaces: infer NS extends Record<string, UntypedSchemaDef> }
  ? { readonly [K in keyof NS]: DbView<NS[K]> }
  : {});

/** The tables of a module, for a function that may only read them. */
export type ReadonlyDbView<SchemaDef extends UntypedSchemaDef> = {
  readonly [Tbl in Values<SchemaDef["tables"]> as Tbl["accessorName"]]: ReadonlyTable<Tbl>;
} & (SchemaDef extends { namespaces: infer NS extends Record<string, UntypedSchemaDef> }
  ? { readonly [K in keyof NS]: ReadonlyDbView<NS[K]> }
  : {});

export type JsonValue = string | number | boolean | null | Array<JsonValue> | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue;
}

/** What the token of a caller says. */
export interface JwtClaims {
  readonly rawPayload: string;
  /** Claim `sub`. */
  readonly subject: string;
  /** Claim `iss`. */
  readonly issuer: string;
  /** Claim `aud`, as a list. */
  readonly audience: readonly string[];
  /** The identity of the caller. */
  readonly identity: Identity;
  /** All claims. */
  readonly fullPayload: JsonObject;
}

/** How a caller is known. */
export type AuthCtx = Readonly<{
  isInternal: boolean;
  hasJWT: boolean;
  jwt: JwtClaims | null;
}>;

/** The context of a call, as the submodules of a module see it. */
export type AliasViews<SchemaDef extends UntypedSchemaDef> = SchemaDef extends {
  namespaces: infer NS extends Record<string, UntypedSchemaDef>;
}
  ? { readonly [K in keyof NS]: ReducerCtx<NS[K]> }
  : {};

/** What a reducer gets besides its arguments. */
export type ReducerCtx<SchemaDef extends UntypedSchemaDef> = Readonly<{
  /** Who called. */
  sender: Identity;
  /** The identity of the database. */
  databaseIdentity: Identity;
  /** @deprecated Use `databaseIdentity`. */
  identity: Identity;
  /** When the call began. */
  timestamp: Timestamp;
  /** The connection of the caller, if the call came through one. */
  connectionId: ConnectionId | null;
  /** The tables. */
  db: DbView<SchemaDef>;
  senderAuth: AuthCtx;
  newUuidV4(): Uuid;
  newUuidV7(): Uuid;
  /** Random numbers, from the time of the call. */
  random: Random;
  as: AliasViews<SchemaDef>;
}>;

export type Reducer<S extends UntypedSchemaDef, Params extends ParamsObj> = (
  ctx: ReducerCtx<S>,
  payload: ParamsAsObject<Params>,
) => void;
