// What generated bindings tell about a module.

import type { AnySchema } from "../core";
import type { AnyProcedures } from "./procedures";
import type { AnyReducers } from "./reducers";

/** What generated bindings say of a module. */
export type RemoteModule<
  SchemaDef extends AnySchema,
  ReducersDef extends AnyReducers,
  ProceduresDef extends AnyProcedures,
  CLI extends string = string,
> = { versionInfo: { cliVersion: CLI } } & SchemaDef & ReducersDef & ProceduresDef;

/** A module of which nothing is known but that it is one. */
export type AnyModule = RemoteModule<AnySchema, AnyReducers, AnyProcedures>;

/** Under this key a connection hands out its module to other parts of the package. */
export const INTERNAL_REMOTE_MODULE: unique symbol = Symbol("lightcone.remoteModule");
