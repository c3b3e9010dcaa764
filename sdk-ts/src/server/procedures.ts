import { AlgebraicType } from "../core/algebraic_type";
import { deserializerOf, serializerOf } from "../core/codec";
import type { ConnectionId } from "../core/connection_id";
import type { Identity } from "../core/identity";
import type { UntypedSchemaDef } from "../core/schema";
import type { ScheduleTableForParams } from "../core/table";
import type { Timestamp } from "../core/timestamp";
import { RowBuilder, type TypeBuilder, type UnitBuilder } from "../core/type_builders";
import type { Infer, InferTypeOfRow } from "../core/type_inference";
import type { Uuid } from "../core/uuid";
import type { ParamsObj, ReducerCtx } from "./ctx_types";
import type { HttpClient } from "./http";
import type { Random } from "./random";
import { asExport, type ModuleExport } from "./registry";

/** A procedure, to be exported. */
export type ProcedureExport<
  S extends UntypedSchemaDef,
  Params extends ParamsObj,
  Ret extends TypeBuilder<any, any>,
> = ProcedureFn<S, Params, Ret> & ModuleExport;

export type ProcedureFn<
  S extends UntypedSchemaDef,
  Params extends ParamsObj,
  Ret extends TypeBuilder<any, any>,
> = (ctx: ProcedureCtx<S>, args: InferTypeOfRow<Params>) => Infer<Ret>;

export interface ProcedureOpts<
  Params extends ParamsObj = ParamsObj,
  Ret extends TypeBuilder<any, any> = TypeBuilder<any, any>,
> {
  /** The name of the procedure in the database, if it is not the name of the export. */
  name: string;
  /** The table whose rows, when due, call this procedure; it must return nothing. */
  onSchedule?: Ret extends UnitBuilder ? ScheduleTableForParams<Params> : never;
}

export type ProcedureOptsWithOptionalName<
  Params extends ParamsObj = ParamsObj,
  Ret extends TypeBuilder<any, any> = TypeBuilder<any, any>,
> = Omit<ProcedureOpts<Params, Ret>, "name"> & { name?: string };

export type ProcedureAliasViews<SchemaDef extends UntypedSchemaDef> = SchemaDef extends {
  namespaces: infer NS extends Record<string, UntypedSchemaDef>;
}
  ? { readonly [K in keyof NS]: ProcedureCtx<NS[K]> }
  : {};

/** What a procedure gets besides its arguments. It reaches the tables by `withTx`. */
export interface ProcedureCtx<S extends UntypedSchemaDef> {
  readonly sender: Identity;
  readonly databaseIdentity: Identity;
  /** @deprecated Use `databaseIdentity`. */
  readonly identity: Identity;
  readonly timestamp: Timestamp;
  readonly connectionId: ConnectionId | null;
  readonly http: HttpClient;
  readonly random: Random;
  readonly as: ProcedureAliasViews<S>;
  /** Runs a function in a transaction; it may run twice, so it should do nothing but use its context. */
  withTx<T>(body: (ctx: TransactionCtx<S>) => T): T;
  newUuidV4(): Uuid;
  newUuidV7(): Uuid;
}

/** What a function gets that `withTx` runs. */
export interface TransactionCtx<S extends UntypedSchemaDef> extends ReducerCtx<S> {}

export function makeProcedureExport(
  opts: ProcedureOptsWithOptionalName<any, any> | undefined,
  params: ParamsObj,
  ret: TypeBuilder<any, any>,
  fn: (ctx: any, args: any) => unknown,
): ProcedureExport<any, any, any> {
  return asExport(fn as ProcedureFn<any, any, any>, (registry, exportName, exported) => {
    registry.defineFunction(exportName, exported);
    const { typespace } = registry;
    const paramsType = registry.paramsType(new RowBuilder(params));
    const returnType = registry.registerTypesRecursively(ret).algebraicType as AlgebraicType;
    registry.moduleDef.procedures.push({
      sourceName: opts?.name ?? exportName,
      params: paramsType,
      returnType,
      visibility: { tag: "ClientCallable" },
    });
    if (opts?.onSchedule) registry.schedule(opts.onSchedule as any, exported);
    const product = AlgebraicType.Product(paramsType);
    registry.procedures.push({
      fn,
      params: product,
      decode: deserializerOf(product, typespace),
      encode: serializerOf(returnType, typespace),
    });
  });
}
