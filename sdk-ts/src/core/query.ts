// Typed queries: `tables.user.where(row => row.online.eq(true))` becomes SQL.

import type { ColumnsWithIndex } from "./columns";
import type { ColumnsOfIndex } from "./indexes";
import type { AnyColumnExpr, AnyCondition } from "./query_expression";
import {
  asCondition,
  type BooleanExpr,
  type ColumnExpr,
  ColumnExpression,
  type ColumnNames,
  combine,
  type Literal,
  literalSql,
  operandSql,
  type PredicateExpr,
  type QueryRow,
  quoteTable,
  type TypedTableDef,
  whereSql,
} from "./query_expression";
import type { AccessorsOf, AnySchema, TableOf } from "./schema";
import { known } from "./untyped";

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

/** The accessor names of the tables of a schema. */
export type TableNames<SchemaDef extends AnySchema> = AccessorsOf<SchemaDef> & string;

/** The definition of a table with this accessor name. */
export type TableDefByName<SchemaDef extends AnySchema, Name extends TableNames<SchemaDef>> = Extract<
  TableOf<SchemaDef>,
  { accessorName: Name }
>;

const QueryBrand: unique symbol = Symbol("lightcone.query");

/** A query for all rows of a table. */
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

interface TypedQuery<TableDef extends TypedTableDef>
  extends RowTypedQuery<QueryRow<TableDef>, TableDef["rowType"]> {}

/** A query that returns rows of a table. */
export type Query<TableDef extends TypedTableDef> = RowTypedQuery<QueryRow<TableDef>, TableDef["rowType"]>;

// Rows and tables --------------------------------------------------------------------------------------------------

/** The first columns of the indexes in the options of a table. */
type FirstColumns<Options> = Options extends unknown
  ? ColumnsOfIndex<Options> extends readonly [infer First extends string, ...unknown[]]
    ? First
    : never
  : never;

/** Columns by which a semijoin can look up rows. */
export type IndexedColumnNames<TableDef extends TypedTableDef> =
  | ColumnsWithIndex<TableDef["columns"]>
  | Extract<FirstColumns<TableDef["indexes"][number]>, ColumnNames<TableDef>>;

type Columns<TableDef extends TypedTableDef, Names extends ColumnNames<TableDef>> = {
  readonly [Name in Names]: ColumnExpr<TableDef, Name>;
};

/** The columns of a table that can be joined, as expressions. */
export type IndexedRowExpr<TableDef extends TypedTableDef> = Columns<TableDef, IndexedColumnNames<TableDef>>;

/** The columns of a table, to write conditions with. */
export type RowExpr<TableDef extends TypedTableDef> = Columns<TableDef, ColumnNames<TableDef>>;

/** A table as a query names it. */
export type TableRef<TableDef extends TypedTableDef> = {
  readonly type: "table";
  readonly accessorName: string;
  readonly tableDef: TableDef;
  readonly cols: RowExpr<TableDef>;
  readonly indexedCols: IndexedRowExpr<TableDef>;
  readonly constraints: any;
} & Readonly<Pick<TableDef, "sourceName" | "columns" | "indexes" | "rowType">>;

/** Makes a condition of the columns of a table. */
type Predicate<TableDef extends TypedTableDef> = (row: RowExpr<TableDef>) => PredicateExpr<TableDef>;

/** A query that can be narrowed; `Narrowed` is what comes of that. */
interface Narrowable<TableDef extends TypedTableDef, Narrowed> extends TypedQuery<TableDef> {
  where(predicate: Predicate<TableDef>): Narrowed;
  toSql(): string;
  /** @deprecated The builder is a query already. */
  build(): Query<TableDef>;
}

/** Rows of one table that have a partner in another one. */
interface Joined<TableDef extends TypedTableDef> extends Narrowable<TableDef, Joined<TableDef>> {}

/** The comparison of a semijoin: of one column of each table. */
type JoinedBy<Left extends TypedTableDef, Right extends TypedTableDef> = (
  left: IndexedRowExpr<Left>,
  right: IndexedRowExpr<Right>,
) => BooleanExpr<Left | Right>;

/** Rows of one table. */
interface Selected<TableDef extends TypedTableDef> extends Narrowable<TableDef, Selected<TableDef>> {
  leftSemijoin<Other extends TypedTableDef>(
    other: TableRef<Other>,
    on: JoinedBy<TableDef, Other>,
  ): Joined<TableDef>;
  rightSemijoin<Other extends TypedTableDef>(
    other: TableRef<Other>,
    on: JoinedBy<TableDef, Other>,
  ): Joined<Other>;
}

/** A value that a view with parameters is called with. */
export type ViewArgument = Literal | Uint8Array;

/** A view with its arguments: it cannot be narrowed or joined. */
export interface ViewCall<TableDef extends TypedTableDef> extends TypedQuery<TableDef> {
  toSql(): string;
}

/** A query for each table of a schema, by accessor name. */
export type QueryBuilder<SchemaDef extends AnySchema> = {
  readonly [TableDef in TableOf<SchemaDef> as TableDef["accessorName"]]: Selected<TableDef> &
    TableRef<TableDef>;
};

type QueryBuilders<Schemas> = {
  readonly [Name in keyof Schemas]: Schemas[Name] extends AnySchema ? QueryBuilder<Schemas[Name]> : never;
};

/** As `QueryBuilder`, with the tables of submodules under the names of their namespaces. */
export type NamespacedQueryBuilder<SchemaDef extends AnySchema> = QueryBuilder<SchemaDef> &
  QueryBuilders<NonNullable<SchemaDef["namespaces"]>>;

/** `FROM table`, with conditions; semijoins start from it. */
class FromBuilder {
  readonly [QueryBrand] = true as const;
  readonly #table: AnyTableRef | undefined;
  readonly whereClause: AnyCondition | undefined;

  /** Without a table, the builder is one itself. */
  constructor(table?: AnyTableRef, whereClause?: AnyCondition) {
    this.#table = table;
    this.whereClause = whereClause;
  }

  get table(): AnyTableRef {
    return this.#table ?? known<AnyTableRef>(this);
  }

  where(predicate: (row: Cols) => unknown): FromBuilder {
    return new FromBuilder(this.table, narrowed(this.whereClause, predicate(this.table.cols)));
  }

  /** Rows of the other table that have a partner here. */
  rightSemijoin(other: AnyTableRef, on: (left: Cols, right: Cols) => AnyCondition): JoinBuilder {
    const condition = on(this.table.indexedCols, other.indexedCols);
    return new JoinBuilder(other, this.table, condition, this.whereClause, undefined);
  }

  /** Rows of this table that have a partner in the other one. */
  leftSemijoin(other: AnyTableRef, on: (left: Cols, right: Cols) => AnyCondition): JoinBuilder {
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
  readonly on: AnyCondition;
  /** Conditions on rows of `partner`; they cannot be tested on this side. */
  readonly partnerCondition: AnyCondition | undefined;
  readonly condition: AnyCondition | undefined;

  constructor(
    table: AnyTableRef,
    partner: AnyTableRef,
    on: AnyCondition,
    partnerCondition: AnyCondition | undefined,
    condition: AnyCondition | undefined,
  ) {
    this.table = table;
    this.partner = partner;
    this.on = on;
    this.partnerCondition = partnerCondition;
    this.condition = condition;
  }

  where(predicate: (row: Cols) => unknown): JoinBuilder {
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

function narrowed(condition: AnyCondition | undefined, predicate: unknown): AnyCondition {
  const added = asCondition(predicate);
  return condition ? combine("and", [condition, added]) : added;
}

/** The columns of a table by their names. */
type Cols = Readonly<Record<string, AnyColumnExpr>>;

type AnyTableRef = {
  readonly sourceName: string;
  readonly accessorName: string;
  readonly cols: Cols;
  readonly indexedCols: Cols;
};

/** A table is a query for all its rows as well. */
class TableQuery extends FromBuilder {
  readonly type = "table" as const;
  readonly sourceName: string;
  readonly accessorName: string;
  readonly cols: Cols;
  readonly indexedCols: Cols;
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

const argumentSql = (arg: ViewArgument): string =>
  arg instanceof Uint8Array
    ? `X'${Array.from(arg, (byte) => byte.toString(16).padStart(2, "0")).join("")}'`
    : literalSql(arg);

/**
 * A view with parameters: its rows for these values, in their order. All queries of a client on the view put their rows into the
 * one table of it. The published package has nothing like it yet; its query builder for Rust calls it so.
 */
export function viewCall<TableDef extends TypedTableDef>(
  view: TableRef<TableDef>,
  ...args: readonly ViewArgument[]
): ViewCall<TableDef> {
  const text = `SELECT * FROM ${quoteTable(view.sourceName)}(${args.map(argumentSql).join(", ")})`;
  return known<ViewCall<TableDef>>({ [QueryBrand]: true, table: view, toSql: () => text });
}

/** A table in queries, from its definition. */
export function createTableRefFromDef<TableDef extends TypedTableDef>(
  tableDef: TableDef,
): TableRef<TableDef> {
  return known<TableRef<TableDef>>(new TableQuery(tableDef));
}

/** The queries that generated bindings export as `tables`. */
export function makeQueryBuilder<SchemaDef extends AnySchema>(schema: SchemaDef): QueryBuilder<SchemaDef> {
  const queries: Record<string, unknown> = {};
  for (const tableDef of Object.values(schema.tables)) {
    queries[tableDef.accessorName] = new TableQuery(known<TypedTableDef>(tableDef));
  }
  return Object.freeze(queries) as QueryBuilder<SchemaDef>;
}

/** As `makeQueryBuilder`; tables named `namespace.table` are found under the namespace. */
export function makeFromBuilder<SchemaDef extends AnySchema>(
  tables: SchemaDef["tables"],
): NamespacedQueryBuilder<SchemaDef> {
  const queries: Record<string, object> = {};
  for (const tableDef of Object.values(tables)) {
    const query = new TableQuery(known<TypedTableDef>(tableDef));
    const dot = tableDef.sourceName.indexOf(".");
    if (dot < 0) {
      queries[tableDef.accessorName] = query;
    } else {
      const namespace = tableDef.sourceName.slice(0, dot);
      const members = (queries[namespace] ??= {});
      Object.assign(members, { [tableDef.sourceName.slice(dot + 1)]: query });
    }
  }
  return queries as NamespacedQueryBuilder<SchemaDef>;
}

export const isRowTypedQuery = (value: unknown): value is RowTypedQuery<any, any> =>
  typeof value === "object" && value !== null && QueryBrand in value;

export const isTypedQuery = (value: unknown): value is TableTypedQuery<any> => isRowTypedQuery(value);

/** The SQL text of a query. */
export function toSql(query: Query<any>): string {
  return known<FromBuilder | JoinBuilder>(query).toSql();
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
export function getQueryWhereClause(query: any): AnyCondition | undefined {
  return query instanceof JoinBuilder ? query.condition : (query as FromBuilder).whereClause;
}
