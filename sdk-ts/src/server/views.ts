import { AlgebraicType, type AlgebraicTypeVariants } from "../core/algebraic_type";
import { deserializerOf, serializerOf } from "../core/codec";
import type { ColumnBuilder } from "../core/column_builders";
import { badValue } from "../core/errors";
import type { Identity } from "../core/identity";
import type { OptionAlgebraicType } from "../core/option";
import type { QueryBuilder, RowTypedQuery } from "../core/query";
import type { UntypedSchemaDef } from "../core/schema";
import { ArrayBuilder, OptionBuilder, RowBuilder, type TypeBuilder } from "../core/type_builders";
import type { Infer, InferSpacetimeTypeOfTypeBuilder, InferTypeOfRow, RowObj } from "../core/type_inference";
import type { IsUnion } from "../core/type_util";
import type { ParamsObj, ReadonlyDbView } from "./ctx_types";
import { asExport, type ModuleExport, type Registry } from "./registry";

/** A view, to be exported. */
export type ViewExport<ViewFn> = ViewFn & ModuleExport;

/** What a view gets that has a result for each caller. */
export type ViewCtx<S extends UntypedSchemaDef> = Readonly<{
  sender: Identity;
  db: ReadonlyDbView<S>;
  /** Starts a query, which a view may return in place of rows. */
  from: QueryBuilder<S>;
}>;

/** What a view gets that has one result for all callers. */
export type AnonymousViewCtx<S extends UntypedSchemaDef> = Readonly<{
  db: ReadonlyDbView<S>;
  from: QueryBuilder<S>;
}>;

export type ViewOpts = {
  name?: string;
  public: true;
};

type FlattenedArray<T> = T extends readonly (infer E)[] ? E : never;

type ViewReturnRow<Ret extends ViewReturnTypeBuilder> = Ret extends ArrayBuilder<infer Element>
  ? Element extends RowBuilder<infer Row>
    ? Row
    : never
  : Ret extends OptionBuilder<infer Value>
    ? Value extends RowBuilder<infer Row>
      ? Row
      : never
    : never;

type PrimaryKeyColumnNames<Row extends RowObj> = {
  [K in keyof Row & string]: Row[K] extends ColumnBuilder<any, any, infer M>
    ? M extends { isPrimaryKey: true }
      ? K
      : never
    : never;
}[keyof Row & string];

type HasMultiplePrimaryKeys<Row extends RowObj> = string extends PrimaryKeyColumnNames<Row>
  ? false
  : IsUnion<PrimaryKeyColumnNames<Row>>;

type ERROR_view_return_type_can_have_at_most_one_primaryKey<Columns extends string> = {
  _primaryKeyColumns: Columns;
  _fix: "Remove primaryKey() from all but one column on the returned row type";
};

/** The compiler asks for one more argument where the rows of a view have two primary keys. */
export type ValidateViewPrimaryKey<Ret extends ViewReturnTypeBuilder> = HasMultiplePrimaryKeys<
  ViewReturnRow<Ret>
> extends true
  ? [error: ERROR_view_return_type_can_have_at_most_one_primaryKey<PrimaryKeyColumnNames<ViewReturnRow<Ret>>>]
  : [];

type ExtractArrayProduct<T extends TypeBuilder<any, any>> = InferSpacetimeTypeOfTypeBuilder<T> extends {
  tag: "Array";
  value: infer V;
}
  ? V extends { tag: "Product"; value: infer P }
    ? P
    : never
  : never;

export type ViewFn<S extends UntypedSchemaDef, Params extends ParamsObj, Ret extends ViewReturnTypeBuilder> =
  | ((ctx: ViewCtx<S>, params: InferTypeOfRow<Params>) => Infer<Ret>)
  | ((
      ctx: ViewCtx<S>,
      params: InferTypeOfRow<Params>,
    ) => RowTypedQuery<FlattenedArray<Infer<Ret>>, ExtractArrayProduct<Ret>>);

export type AnonymousViewFn<
  S extends UntypedSchemaDef,
  Params extends ParamsObj,
  Ret extends ViewReturnTypeBuilder,
> =
  | ((ctx: AnonymousViewCtx<S>, params: InferTypeOfRow<Params>) => Infer<Ret>)
  | ((
      ctx: AnonymousViewCtx<S>,
      params: InferTypeOfRow<Params>,
    ) => RowTypedQuery<FlattenedArray<Infer<Ret>>, ExtractArrayProduct<Ret>>);

/** An array of rows, or a row that may be missing. */
export type ViewReturnTypeBuilder =
  | TypeBuilder<readonly object[], { tag: "Array"; value: AlgebraicTypeVariants.Product }>
  | TypeBuilder<object | undefined, OptionAlgebraicType<AlgebraicTypeVariants.Product>>;

export function makeViewExport(
  opts: ViewOpts,
  ret: TypeBuilder<any, any>,
  fn: (ctx: any, params: any) => unknown,
  isAnonymous: boolean,
): ViewExport<any> {
  return asExport(fn, (registry, exportName, exported) =>
    registerView(registry, exportName, exported, opts, ret, fn, isAnonymous),
  );
}

function primaryKeyOf(exportName: string, ret: TypeBuilder<any, any>): string | undefined {
  const row =
    ret instanceof ArrayBuilder ? ret.element : ret instanceof OptionBuilder ? ret.value : undefined;
  if (!(row instanceof RowBuilder)) return undefined;
  const columns = Object.entries<ColumnBuilder<any, any, any>>(row.row)
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
  opts: ViewOpts,
  ret: TypeBuilder<any, any>,
  fn: (ctx: any, params: any) => unknown,
  isAnonymous: boolean,
): void {
  registry.defineFunction(exportName, exported);
  const { moduleDef, typespace } = registry;
  const primaryKey = primaryKeyOf(exportName, ret);
  const returnType = registry.registerTypesRecursively(ret).algebraicType as AlgebraicType;
  const params = registry.defineParams(exportName, {});
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
