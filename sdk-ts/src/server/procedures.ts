import { AlgebraicType } from "../core/algebraic_type";
import { deserializerOf, serializerOf } from "../core/codec";
import type { ConnectionId } from "../core/connection_id";
import type { Identity } from "../core/identity";
import type { AnySchema } from "../core/schema";
import type { TableOfArgument } from "../core/table";
import type { Timestamp } from "../core/timestamp";
import { RowBuilder, type UnitBuilder } from "../core/type_builders";
import type { Infer, InferTypeOfRow } from "../core/type_inference";
import type { AnyFunction } from "../core/untyped";
import type { AnyTypeBuilder } from "../core/untyped_builders";
import type { Uuid } from "../core/uuid";
import type { ParamsObj, ReducerCtx, SubmodulesOf } from "./ctx_types";
import type { Environment } from "./environment_access";
import type { HttpClient } from "./http";
import type { Random } from "./random";
import { asExport, type FunctionOptions, type ModuleExport } from "./registry";

/** The function of a procedure. */
export type ProcedureFn<S extends AnySchema, Params extends ParamsObj, Result extends AnyTypeBuilder> = (
  ctx: ProcedureCtx<S>,
  args: InferTypeOfRow<Params>,
) => Infer<Result>;

/** A procedure, to be exported. */
export type ProcedureExport<
  S extends AnySchema,
  Params extends ParamsObj,
  Ret extends AnyTypeBuilder,
> = ProcedureFn<S, Params, Ret> & ModuleExport;

/** Options of a procedure. */
export interface ProcedureOptions<
  Params extends ParamsObj = ParamsObj,
  Result extends AnyTypeBuilder = AnyTypeBuilder,
> extends FunctionOptions {
  /** The table whose rows, when due, call this procedure; it must return nothing. */
  onSchedule?: Result extends UnitBuilder ? TableOfArgument<Params> : never;
}

/** The context of a procedure, as the submodules of a module see it. */
type ProcedureCtxs<Submodules> = {
  readonly [Name in keyof Submodules]: Submodules[Name] extends AnySchema
    ? ProcedureCtx<Submodules[Name]>
    : never;
};

/** The context of a procedure. It reaches the tables by `withTx`. */
export interface ProcedureCtx<S extends AnySchema> {
  readonly sender: Identity;
  readonly databaseIdentity: Identity;
  /** @deprecated Use `databaseIdentity`. */
  readonly identity: Identity;
  readonly timestamp: Timestamp;
  readonly connectionId: ConnectionId | null;
  /** Variables of the environment. */
  readonly env: Environment;
  readonly http: HttpClient;
  readonly random: Random;
  readonly as: ProcedureCtxs<SubmodulesOf<S>>;
  /** Runs a function in a transaction; it may run twice, so it should do nothing but use its context. */
  withTx<T>(body: (ctx: TransactionCtx<S>) => T): T;
  newUuidV4(): Uuid;
  newUuidV7(): Uuid;
}

/** The context of a function in `withTx`. */
export interface TransactionCtx<S extends AnySchema> extends ReducerCtx<S> {}

export function makeProcedureExport(
  opts: ProcedureOptions | undefined,
  params: ParamsObj,
  ret: AnyTypeBuilder,
  fn: AnyFunction,
): AnyFunction & ModuleExport {
  return asExport(fn, (registry, exportName, exported) => {
    registry.defineFunction(exportName, exported);
    const { typespace } = registry;
    const paramsType = registry.paramsType(new RowBuilder(params));
    const returnType = registry.register(ret).algebraicType;
    registry.moduleDef.procedures.push({
      sourceName: opts?.name ?? exportName,
      params: paramsType,
      returnType,
      visibility: { tag: "ClientCallable" },
    });
    if (opts?.onSchedule) registry.schedule(opts.onSchedule, exported);
    const product = AlgebraicType.Product(paramsType);
    registry.procedures.push({
      fn,
      params: product,
      decode: deserializerOf(product, typespace),
      encode: serializerOf(returnType, typespace),
    });
  });
}
