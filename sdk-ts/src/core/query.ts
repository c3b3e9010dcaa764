// Typed queries: `tables.user.where(row => row.online.eq(true))` becomes SQL.

import type { ColumnIndex, IndexColumns, IndexOpts } from "./indexes";
import {
  asCondition,
  type BooleanExpr,
  type ColumnExpr,
  ColumnExpression,
  type ColumnNames,
  combine,
  operandSql,
  type PredicateExpr,
  type QueryRow,
  quoteTable,
  type TypedTableDef,
  whereSql,
} from "./query_expression";
import type { UntypedSchemaDef } from "./schema";
import type { Values } from "./type_util";

export {
  and,
  BooleanExpr,
  type ColumnExpr,
  ColumnExpression,
  type ColumnExprForValue,
  evaluateBooleanExpr,
  literal,
  not,
  or,
  type TypedTableDef,
  toComparableValue,
  type ValueExpr,
} from "./query_expression";

export type TableNames<SchemaDef extends UntypedSchemaDef> = Values<SchemaDef["tables"]>["accessorName"] &
  string;

export type TableDefByName<SchemaDef extends UntypedSchemaDef, Name extends TableNames<SchemaDef>> = Extract<
  Values<SchemaDef["tables"]>,
  { accessorName: Name }
>;

const QueryBrand: unique symbol = Symbol("lightcone.query");

export interface TableTypedQuery<TableDef extends TypedTableDef> {
  readonly [QueryBrand]: true;
  readonly __table?: TableDef;
}

/** A query whose rows have the type `Row`. */
export interface RowTypedQuery<Row, ST> {
  readonly [QueryBrand]: true;
  readonly __row?: Row;
  readonly __algebraicType?: ST;
}

/** A query that returns rows of a table. */
export type Query<TableDef extends TypedTableDef> = RowTypedQuery<QueryRow<TableDef>, TableDef["rowType"]>;

// Rows and tables --------------------------------------------------------------------------------------------------

type FirstIndexColumn<I extends IndexOpts<any>> = IndexColumns<I> extends readonly [
  infer Head extends string,
  ...infer _Rest,
]
  ? Head
  : never;

type ExplicitIndexedColumns<TableDef extends TypedTableDef> = TableDef["indexes"][number] extends infer I
  ? I extends IndexOpts<ColumnNames<TableDef>>
    ? FirstIndexColumn<I> & ColumnNames<TableDef>
    : never
  : never;

type MetadataIndexedColumns<TableDef extends TypedTableDef> = {
  [K in ColumnNames<TableDef>]: ColumnIndex<K, TableDef["columns"][K]["columnMetadata"]> extends never
    ? never
    : K;
}[ColumnNames<TableDef>];

/** Columns by which a semijoin can look up rows. */
export type IndexedColumnNames<TableDef extends TypedTableDef> =
  | ExplicitIndexedColumns<TableDef>
  | MetadataIndexedColumns<TableDef>;

export type IndexedRowExpr<TableDef extends TypedTableDef> = Readonly<{
  readonly [C in IndexedColumnNames<TableDef>]: ColumnExpr<TableDef, C>;
}>;

/** The columns of a table, to write conditions with. */
export type RowExpr<TableDef extends TypedTableDef> = Readonly<{
  readonly [C in ColumnNames<TableDef>]: ColumnExpr<TableDef, C>;
}>;

/** A table as a query names it. */
export type TableRef<TableDef extends TypedTableDef> = Readonly<{
  type: "table";
  sourceName: TableDef["sourceName"];
  accessorName: string;
  cols: RowExpr<TableDef>;
  indexedCols: IndexedRowExpr<TableDef>;
  tableDef: TableDef;
  columns: TableDef["columns"];
  indexes: TableDef["indexes"];
  rowType: TableDef["rowType"];
  constraints: any;
}>;

type SemijoinBuilder<TableDef extends TypedTableDef> = RowTypedQuery<
  QueryRow<TableDef>,
  TableDef["rowType"]
> &
  Readonly<{
    toSql(): string;
    where(predicate: (row: RowExpr<TableDef>) => PredicateExpr<TableDef>): SemijoinBuilder<TableDef>;
    /** @deprecated The builder is a query already. */
    build(): Query<TableDef>;
  }>;

type From<TableDef extends TypedTableDef> = RowTypedQuery<QueryRow<TableDef>, TableDef["rowType"]> &
  Readonly<{
    toSql(): string;
    where(predicate: (row: RowExpr<TableDef>) => PredicateExpr<TableDef>): From<TableDef>;
    rightSemijoin<RightTable extends TypedTableDef>(
      other: TableRef<RightTable>,
      on: (
        left: IndexedRowExpr<TableDef>,
        right: IndexedRowExpr<RightTable>,
      ) => BooleanExpr<TableDef | RightTable>,
    ): SemijoinBuilder<RightTable>;
    leftSemijoin<RightTable extends TypedTableDef>(
      other: TableRef<RightTable>,
      on: (
        left: IndexedRowExpr<TableDef>,
        right: IndexedRowExpr<RightTable>,
      ) => BooleanExpr<TableDef | RightTable>,
    ): SemijoinBuilder<TableDef>;
    /** @deprecated The builder is a query already. */
    build(): Query<TableDef>;
  }>;

/** A query for each table of a schema, by accessor name. */
export type QueryBuilder<SchemaDef extends UntypedSchemaDef> = {
  readonly [Tbl in Values<SchemaDef["tables"]> as Tbl["accessorName"]]: TableRef<Tbl> & From<Tbl>;
} & {};

/** As `QueryBuilder`, with the tables of submodules under the names of their namespaces. */
export type NamespacedQueryBuilder<SchemaDef extends UntypedSchemaDef> = QueryBuilder<SchemaDef> & {
  readonly [NS in keyof NonNullable<SchemaDef["namespaces"]>]: NonNullable<
    SchemaDef["namespaces"]
  >[NS] extends UntypedSchemaDef
    ? QueryBuilder<NonNullable<SchemaDef["namespaces"]>[NS]>
    : never;
};

/** `FROM table`, with conditions; semijoins start from it. */
class FromBuilder {
  readonly [QueryBrand] = true as const;
  readonly #table: AnyTableRef | undefined;
  readonly whereClause: BooleanExpr<any> | undefined;

  /** Without a table, the builder is one itself. */
  constructor(table?: AnyTableRef, whereClause?: BooleanExpr<any>) {
    this.#table = table;
    this.whereClause = whereClause;
  }

  get table(): AnyTableRef {
    return this.#table ?? (this as unknown as AnyTableRef);
  }

  where(predicate: (row: any) => unknown): FromBuilder {
    return new FromBuilder(this.table, narrowed(this.whereClause, predicate(this.table.cols)));
  }

  /** Rows of the other table that have a partner here. */
  rightSemijoin(other: AnyTableRef, on: (left: any, right: any) => BooleanExpr<any>): JoinBuilder {
    const condition = on(this.table.indexedCols, other.indexedCols);
    return new JoinBuilder(other, this.table, condition, this.whereClause, undefined);
  }

  /** Rows of this table that have a partner in the other one. */
  leftSemijoin(other: AnyTableRef, on: (left: any, right: any) => BooleanExpr<any>): JoinBuilder {
    const condition = on(this.table.indexedCols, other.indexedCols);
    return new JoinBuilder(this.table, other, condition, undefined, this.whereClause);
  }

  toSql(): string {
    return `SELECT * FROM ${quoteTable(this.table.sourceName)}${whereSql(this.whereClause)}`;
  }

  build(): this {
    return this;
  }
}

/** Rows of `table` that have a partner in `partner`. */
class JoinBuilder {
  readonly [QueryBrand] = true as const;
  readonly table: AnyTableRef;
  readonly partner: AnyTableRef;
  readonly on: BooleanExpr<any>;
  /** Conditions on rows of `partner`; they cannot be tested on this side. */
  readonly partnerCondition: BooleanExpr<any> | undefined;
  readonly condition: BooleanExpr<any> | undefined;

  constructor(
    table: AnyTableRef,
    partner: AnyTableRef,
    on: BooleanExpr<any>,
    partnerCondition: BooleanExpr<any> | undefined,
    condition: BooleanExpr<any> | undefined,
  ) {
    this.table = table;
    this.partner = partner;
    this.on = on;
    this.partnerCondition = partnerCondition;
    this.condition = condition;
  }

  where(predicate: (row: any) => unknown): JoinBuilder {
    const condition = narrowed(this.condition, predicate(this.table.cols));
    return new JoinBuilder(this.table, this.partner, this.on, this.partnerCondition, condition);
  }

  toSql(): string {
    const { data } = this.on;
    if (data.type !== "eq") throw new TypeError("a semijoin compares one column of each table with eq");
    const [table, partner] = [quoteTable(this.table.sourceName), quoteTable(this.partner.sourceName)];
    const on = `${operandSql(data.left)} = ${operandSql(data.right)}`;
    const condition =
      this.partnerCondition && this.condition
        ? combine("and", [this.partnerCondition, this.condition])
        : (this.partnerCondition ?? this.condition);
    return `SELECT ${table}.* FROM ${partner} JOIN ${table} ON ${on}${whereSql(condition)}`;
  }

  build(): this {
    return this;
  }
}

function narrowed(condition: BooleanExpr<any> | undefined, predicate: unknown): BooleanExpr<any> {
  const added = asCondition(predicate);
  return condition ? combine("and", [condition, added]) : added;
}

type AnyTableRef = {
  readonly sourceName: string;
  readonly accessorName: string;
  readonly cols: Record<string, ColumnExpression<any, any>>;
  readonly indexedCols: Record<string, ColumnExpression<any, any>>;
};

/** A table is a query for all its rows as well. */
class TableQuery extends FromBuilder {
  readonly type = "table" as const;
  readonly sourceName: string;
  readonly accessorName: string;
  readonly cols: Record<string, ColumnExpression<any, any>>;
  readonly indexedCols: Record<string, ColumnExpression<any, any>>;
  readonly tableDef: TypedTableDef;

  constructor(tableDef: TypedTableDef) {
    super();
    this.tableDef = tableDef;
    this.sourceName = tableDef.sourceName;
    this.accessorName = tableDef.accessorName;
    this.cols = Object.freeze(
      Object.fromEntries(
        Object.entries(tableDef.columns).map(([name, column]) => [
          name,
          new ColumnExpression<any, any>(
            tableDef.sourceName,
            name,
            column.typeBuilder.algebraicType,
            (column.columnMetadata as { name?: string }).name ?? name,
          ),
        ]),
      ),
    );
    this.indexedCols = this.cols;
  }

  get columns(): unknown {
    return this.tableDef.columns;
  }

  get indexes(): unknown {
    return this.tableDef.indexes;
  }

  get rowType(): unknown {
    return this.tableDef.rowType;
  }

  get constraints(): unknown {
    return (this.tableDef as { constraints?: unknown }).constraints;
  }
}

export function createTableRefFromDef<TableDef extends TypedTableDef>(
  tableDef: TableDef,
): TableRef<TableDef> {
  return new TableQuery(tableDef) as unknown as TableRef<TableDef>;
}

/** The queries that generated bindings export as `tables`. */
export function makeQueryBuilder<SchemaDef extends UntypedSchemaDef>(
  schema: SchemaDef,
): QueryBuilder<SchemaDef> {
  const queries: Record<string, unknown> = {};
  for (const tableDef of Object.values(schema.tables)) {
    queries[tableDef.accessorName] = new TableQuery(tableDef as unknown as TypedTableDef);
  }
  return Object.freeze(queries) as QueryBuilder<SchemaDef>;
}

/** As `makeQueryBuilder`; tables named `namespace.table` are found under the namespace. */
export function makeFromBuilder<SchemaDef extends UntypedSchemaDef>(
  tables: SchemaDef["tables"],
): NamespacedQueryBuilder<SchemaDef> {
  const queries: Record<string, any> = {};
  for (const tableDef of Object.values(tables)) {
    const query = new TableQuery(tableDef as unknown as TypedTableDef);
    const dot = tableDef.sourceName.indexOf(".");
    if (dot < 0) {
      queries[tableDef.accessorName] = query;
    } else {
      const namespace = tableDef.sourceName.slice(0, dot);
      queries[namespace] ??= {};
      queries[namespace][tableDef.sourceName.slice(dot + 1)] = query;
    }
  }
  return queries as NamespacedQueryBuilder<SchemaDef>;
}

export const isRowTypedQuery = (value: unknown): value is RowTypedQuery<any, any> =>
  typeof value === "object" && value !== null && QueryBrand in value;

export const isTypedQuery = (value: unknown): value is TableTypedQuery<any> => isRowTypedQuery(value);

/** The SQL text of a query. */
export function toSql(query: Query<any>): string {
  return (query as unknown as { toSql(): string }).toSql();
}

function tableOf(query: unknown): AnyTableRef {
  return (query as FromBuilder | JoinBuilder).table;
}

/** Name in the database of the table whose rows a query returns. */
export function getQueryTableName(query: any): string {
  return tableOf(query).sourceName;
}

/** Name in `connection.db` of the table whose rows a query returns. */
export function getQueryAccessorName(query: any): string {
  return tableOf(query).accessorName;
}

/** The condition of a query on the rows that it returns; of a semijoin, without that on the other table. */
export function getQueryWhereClause(query: any): BooleanExpr<any> | undefined {
  return query instanceof JoinBuilder ? query.condition : (query as FromBuilder).whereClause;
}
