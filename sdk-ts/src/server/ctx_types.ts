// The contexts of a module's functions.

import type { ConnectionId } from "../core/connection_id";
import type { Identity } from "../core/identity";
import type { AnySchema, TableOf } from "../core/schema";
import type { ReadonlyTable, Table } from "../core/table";
import type { Timestamp } from "../core/timestamp";
import type { InferTypeOfRow, RowObj } from "../core/type_inference";
import type { Uuid } from "../core/uuid";
import type { Environment } from "./environment_access";
import type { Random } from "./random";

/** Parameters of a function: a type for each name. */
export type ParamsObj = RowObj;

/** The submodules of a schema by their namespaces; nothing if it has none. */
export type SubmodulesOf<SchemaDef extends AnySchema> = SchemaDef extends {
  namespaces: infer Submodules extends Record<string, AnySchema>;
}
  ? Submodules
  : {};

type TablesOf<SchemaDef extends AnySchema> = {
  readonly [Def in TableOf<SchemaDef> as Def["accessorName"]]: Table<Def>;
};

type ReadonlyTablesOf<SchemaDef extends AnySchema> = {
  readonly [Def in TableOf<SchemaDef> as Def["accessorName"]]: ReadonlyTable<Def>;
};

/** The tables of a module and its submodules, for a function that may change them. */
export type DbView<SchemaDef extends AnySchema> = TablesOf<SchemaDef> & DbViews<SubmodulesOf<SchemaDef>>;

type DbViews<Submodules> = {
  readonly [Name in keyof Submodules]: Submodules[Name] extends AnySchema ? DbView<Submodules[Name]> : never;
};

/** The tables of a module and its submodules, for a function that may only read them. */
export type ReadonlyDbView<SchemaDef extends AnySchema> = ReadonlyTablesOf<SchemaDef> &
  ReadonlyDbViews<SubmodulesOf<SchemaDef>>;

type ReadonlyDbViews<Submodules> = {
  readonly [Name in keyof Submodules]: Submodules[Name] extends AnySchema
    ? ReadonlyDbView<Submodules[Name]>
    : never;
};

/** A value of JSON. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export interface JsonObject {
  [name: string]: JsonValue;
}

/** The claims in a caller's token. */
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

/** The authentication of a caller. */
export type AuthCtx = Readonly<{
  isInternal: boolean;
  hasJWT: boolean;
  jwt: JwtClaims | null;
}>;

/** The context of a call, as the submodules of a module see it. */
type ReducerCtxs<Submodules> = {
  readonly [Name in keyof Submodules]: Submodules[Name] extends AnySchema
    ? ReducerCtx<Submodules[Name]>
    : never;
};

/** The context of a reducer. */
export type ReducerCtx<SchemaDef extends AnySchema> = Readonly<{
  /** The caller. */
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
  /** Variables of the environment. */
  env: Environment;
  senderAuth: AuthCtx;
  newUuidV4(): Uuid;
  newUuidV7(): Uuid;
  /** Random numbers, from the time of the call. */
  random: Random;
  as: ReducerCtxs<SubmodulesOf<SchemaDef>>;
}>;

/** The function of a reducer. */
export type Reducer<S extends AnySchema, Params extends ParamsObj> = (
  ctx: ReducerCtx<S>,
  payload: InferTypeOfRow<Params>,
) => void;
