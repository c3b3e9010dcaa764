// Views: rows that are computed from tables.

import { AlgebraicType } from "../core/algebraic_type";
import type { Product } from "../core/algebraic_type_variants";
import { deserializerOf, serializerOf } from "../core/codec";
import type { KeyColumns } from "../core/columns";
import { badValue } from "../core/errors";
import type { Identity } from "../core/identity";
import type { OptionAlgebraicType } from "../core/option";
import type { QueryBuilder, RowTypedQuery } from "../core/query";
import type { AnySchema } from "../core/schema";
import { ArrayBuilder, OptionBuilder, RowBuilder, type TypeBuilder } from "../core/type_builders";
import type { Infer, InferTypeOfRow } from "../core/type_inference";
import type { ProductTypeType } from "../core/type_tree";
import type { AnyFunction } from "../core/untyped";
import type { AnyColumn, AnyTypeBuilder } from "../core/untyped_builders";
import type { ParamsObj, ReadonlyDbView } from "./ctx_types";
import type { Environment } from "./environment_access";
import { asExport, type FunctionOptions, type ModuleExport, type Registry } from "./registry";

/** A view, to be exported. */
export type ViewExport<ViewFn> = ViewFn & ModuleExport;

/** For the compiler only: the rows of a view, of which its function may know more than its callers. */
export interface HasViewResult<Result> {
  readonly viewResult?: Result;
}

/** The context of a view with one result for all callers. */
export type AnonymousViewCtx<S extends AnySchema> = Readonly<{
  db: ReadonlyDbView<S>;
  /** Variables of the environment. The view follows their changes. */
  env: Environment;
  /** Starts a query, which a view may return in place of rows. */
  from: QueryBuilder<S>;
}>;

/** The context of a view with a result for each caller. */
export type ViewCtx<S extends AnySchema> = AnonymousViewCtx<S> & Readonly<{ sender: Identity }>;

export interface ViewOptions extends FunctionOptions {
  public: true;
}

type Rows = TypeBuilder<readonly object[], { tag: "Array"; value: Product }>;
type RowOrNothing = TypeBuilder<object | undefined, OptionAlgebraicType<Product>>;

/** The result of a view: an array of rows, or an optional row. */
export type ViewResult = RowOrNothing | Rows;

// Primary keys --------------------------------------------------------------------------------------------------------

/** The type of a property, if there is one of this name. */
type PropertyOf<T, Name extends string> = T extends { [Key in Name]: infer Value } ? Value : never;

type ColumnsOfRow<Row> = Row extends RowBuilder<infer Columns> ? Columns : {};

/** The columns of the rows of a view: an array has an element, an option a value. */
type ColumnsOfView<Result> = ColumnsOfRow<PropertyOf<Result, "element"> | PropertyOf<Result, "value">>;

/** The compiler shows this where the rows of a view have two primary keys. */
interface SecondPrimaryKey<Columns> {
  columns: Columns;
  reason: "The rows of a view have one primary key at most: take primaryKey() off the other columns";
}

/** Whether there are several names; of names that are not known, nothing is known. */
type IsOneOfSeveral<Name, All = Name> = Name extends unknown ? ([All] extends [Name] ? false : true) : never;

/** The compiler asks for one more argument, which cannot be given, where the rows of a view have two primary keys. */
export type KeyErrors<
  Result extends ViewResult,
  Keys = KeyColumns<ColumnsOfView<Result>>,
> = true extends IsOneOfSeveral<Keys> ? [error: SecondPrimaryKey<Keys>] : [];

// Functions -----------------------------------------------------------------------------------------------------------

/** The query that a view may return in place of an array of rows. */
type QueryForRows<Result extends ViewResult> = Result extends TypeBuilder<
  readonly (infer Row)[],
  { tag: "Array"; value: { tag: "Product"; value: infer Type extends ProductTypeType } }
>
  ? RowTypedQuery<Row, Type>
  : RowTypedQuery<never, never>;

type ReturnsRows<Ctx, Params extends ParamsObj, Result extends ViewResult> = (
  ctx: Ctx,
  params: InferTypeOfRow<Params>,
) => Infer<Result>;

type ReturnsQuery<Ctx, Params extends ParamsObj, Result extends ViewResult> = (
  ctx: Ctx,
  params: InferTypeOfRow<Params>,
) => QueryForRows<Result>;

/** The function of a view with this context. */
export type ViewFunction<Ctx, Params extends ParamsObj, Result extends ViewResult> =
  | ReturnsQuery<Ctx, Params, Result>
  | ReturnsRows<Ctx, Params, Result>;

export function makeViewExport<F extends AnyFunction>(
  opts: ViewOptions,
  params: ParamsObj,
  ret: AnyTypeBuilder,
  fn: F,
  isAnonymous: boolean,
): ViewExport<F> {
  return asExport(fn, (registry, exportName, exported) =>
    registerView(registry, exportName, exported, opts, params, ret, fn, isAnonymous),
  );
}

function primaryKeyOf(exportName: string, ret: AnyTypeBuilder): string | undefined {
  const row =
    ret instanceof ArrayBuilder ? ret.element : ret instanceof OptionBuilder ? ret.value : undefined;
  if (!(row instanceof RowBuilder)) return undefined;
  const columns = Object.entries<AnyColumn>(row.row)
    .filter(([, column]) => column.columnMetadata.isPrimaryKey)
    .map(([name]) => name);
  if (columns.length > 1) {
    throw badValue(
      `View '${exportName}' can have at most one primaryKey() column on its returned row type; found ${columns.join(", ")}`,
    );
  }
  return columns[0];
}

function registerView(
  registry: Registry,
  exportName: string,
  exported: unknown,
  opts: ViewOptions,
  declared: ParamsObj,
  ret: AnyTypeBuilder,
  fn: AnyFunction,
  isAnonymous: boolean,
): void {
  registry.defineFunction(exportName, exported);
  const { moduleDef, typespace } = registry;
  // Rows of several instances may have one key, and clients have all in one table.
  const hasParams = Object.keys(declared).length > 0;
  const primaryKey = hasParams ? undefined : primaryKeyOf(exportName, ret);
  const returnType = registry.register(ret).algebraicType as AlgebraicType;
  const params = registry.defineParams(exportName, declared);
  const entries = isAnonymous ? registry.anonymousViews : registry.views;
  moduleDef.views.push({
    sourceName: exportName,
    index: entries.length,
    isPublic: opts.public,
    isAnonymous,
    params,
    returnType,
  });
  if (opts.name !== undefined) registry.addExplicitName("Function", exportName, opts.name);
  if (primaryKey !== undefined) {
    moduleDef.viewPrimaryKeys.push({ viewSourceName: exportName, columns: [primaryKey] });
  }
  const isOption = returnType.tag === "Sum";
  const rows = isOption ? AlgebraicType.Array(returnType.value.variants[0]!.algebraicType) : returnType;
  const product = AlgebraicType.Product(params);
  entries.push({
    fn,
    isOption,
    params: product,
    decode: deserializerOf(product, typespace),
    encodeRows: serializerOf(rows, typespace),
  });
}
