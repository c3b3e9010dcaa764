// The definition of a module in generated bindings.

import type { AnySchema, ProductType, RowObj } from "../core";
import type { AnyTypeBuilder } from "../core/untyped_builders";

/** Parameters by name. */
export type ParamsObj = RowObj;

/** A reducer of a module, whatever its parameters. */
export interface AnyReducer {
  accessorName: string;
  /** Its name in the database. */
  name: string;
  params: ParamsObj;
  paramsType: ProductType;
}

export interface AnyReducers {
  reducers: readonly AnyReducer[];
}

/** A procedure of a module, whatever its parameters and its result. */
export interface AnyProcedure {
  accessorName: string;
  /** Its name in the database. */
  name: string;
  params: Record<string, AnyTypeBuilder>;
  returnType: AnyTypeBuilder;
}

export interface AnyProcedures {
  procedures: readonly AnyProcedure[];
}

/** The definition of a module in generated bindings. */
export type RemoteModule<
  SchemaDef extends AnySchema,
  ReducersDef extends AnyReducers,
  ProceduresDef extends AnyProcedures,
  CLI extends string = string,
> = { versionInfo: { cliVersion: CLI } } & SchemaDef & ReducersDef & ProceduresDef;

/** Any module. */
export type AnyModule = RemoteModule<AnySchema, AnyReducers, AnyProcedures>;

/** Under this key a connection hands out its module to other parts of the package. */
export const INTERNAL_REMOTE_MODULE: unique symbol = Symbol("lightcone.remoteModule");
