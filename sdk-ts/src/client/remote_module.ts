// What generated bindings tell about a module.

import type { UntypedSchemaDef } from "../core";
import type { UntypedProceduresDef } from "./procedures";
import type { UntypedReducersDef } from "./reducers";

export type { UntypedSchemaDef };

export type RemoteModule<
  SchemaDef extends UntypedSchemaDef,
  ReducersDef extends UntypedReducersDef,
  ProceduresDef extends UntypedProceduresDef,
  CLI extends string = string,
> = SchemaDef & ReducersDef & ProceduresDef & { versionInfo: { cliVersion: CLI } };

export type UntypedRemoteModule = RemoteModule<UntypedSchemaDef, UntypedReducersDef, UntypedProceduresDef>;

export type SchemaDef<RemoteModule extends UntypedRemoteModule> = RemoteModule["tables"];
export type ReducersDef<RemoteModule extends UntypedRemoteModule> = RemoteModule["reducers"];

/** Under this key a connection hands out its module to other parts of the package. */
export const INTERNAL_REMOTE_MODULE: unique symbol = Symbol("lightcone.remoteModule");
