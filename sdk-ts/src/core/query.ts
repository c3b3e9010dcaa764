// Typed queries: `tables.user.where(row => row.online.eq(true))` becomes SQL, and a test of rows on this side.

import type { Bool as BoolType } from "./algebraic_type_variants";
import type { ColumnBuilder, ColumnMetadata } from "./column_builders";
import { ConnectionId } from "./connection_id";
import { Identity } from "./identity";
import type { ColumnIndex, IndexColumns, IndexOpts } from "./indexes";
import type { UntypedSchemaDef } from "./schema";
import { Timestamp } from "./timestamp";
import type { RowBuilder, TypeBuilder } from "./type_builders";
import type { Values } from "./type_util";
import { Uuid } from "./uuid";

/** What a query needs to know of a table. */
export type TypedTableDef<
  Columns extends Record<string, ColumnBuilder<any, any, ColumnMetadata<any>>> = Record<
    string,
    ColumnBuilder<any, any, ColumnMetadata<any>>
  >,
> = {
  sourceName: string;
  accessorName: string;
  columns: Columns;
  indexes: readonly IndexOpts<any>[];
  rowType: RowBuilder<Columns>["algebraicType"]["value"];
};

export type TableNames<SchemaDef extends UntypedSchemaDef> = Values<SchemaDef["tables"]>["accessorName"] &
  string;

export type TableDefByName<SchemaDef extends UntypedSchemaDef, Name extends TableNames<SchemaDef>> = Extract<
  Values<SchemaDef["tables"]>,
  { accessorName: Name }
>;

type RowType<TableDef extends TypedTableDef> = {
  [K in keyof TableDef["columns"]]: TableDef["columns"][K] extends ColumnBuilder<infer T, any, any>
    ? T
    : never;
};

type ColumnNames<TableDef extends TypedTableDef> = keyof RowType<TableDef> & string;

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
export type Query<TableDef extends TypedTableDef> = RowTypedQuery<RowType<TableDef>, TableDef["rowType"]>;

// Columns and predicates -------------------------------------------------------------------------------------------

type LiteralValue = string | number | bigint | boolean | Identity | Uuid | Timestamp | ConnectionId;
type LiteralExpr<Value> = { type: "literal"; value: Value };

type InferSpacetimeTypeOfColumn<
  TableDef extends TypedTableDef,
  ColumnName extends ColumnNames<TableDef>,
> = TableDef["columns"][ColumnName]["typeBuilder"] extends TypeBuilder<any, infer U> ? U : never;

export type ColumnExpr<
  TableDef extends TypedTableDef,
  ColumnName extends ColumnNames<TableDef>,
> = ColumnExpression<TableDef, ColumnName>;

type ColumnSpacetimeType<Col extends ColumnExpr<any, any>> = Col extends ColumnExpr<infer T, infer N>
  ? InferSpacetimeTypeOfColumn<T, N>
  : never;

/** `OtherCol` if it has the type of the column, otherwise nothing. */
type ColumnSameSpacetime<
  ThisTable extends TypedTableDef,
  ThisCol extends ColumnNames<ThisTable>,
  OtherCol extends ColumnExpr<any, any>,
> = [InferSpacetimeTypeOfColumn<ThisTable, ThisCol>] extends [ColumnSpacetimeType<OtherCol>]
  ? [ColumnSpacetimeType<OtherCol>] extends [InferSpacetimeTypeOfColumn<ThisTable, ThisCol>]
    ? OtherCol
    : never
  : never;

type ExtractTable<Col extends ColumnExpr<any, any>> = Col extends ColumnExpr<infer T, any> ? T : never;

type Comparison = "eq" | "ne" | "lt" | "lte" | "gt" | "gte";

const OPERATORS: Record<Comparison, string> = { eq: "=", ne: "<>", lt: "<", lte: "<=", gt: ">", gte: ">=" };

/** A column in a query: compares with a value, or with a column of the same type. */
export class ColumnExpression<TableDef extends TypedTableDef, ColumnName extends ColumnNames<TableDef>> {
  readonly type = "column" as const;
  /** Name in TypeScript. */
  readonly column: ColumnName;
  /** Name in the database. */
  readonly columnName: string;
  readonly table: TableDef["sourceName"];
  declare readonly tsValueType?: RowType<TableDef>[ColumnName];
  readonly spacetimeType: InferSpacetimeTypeOfColumn<TableDef, ColumnName>;

  constructor(
    table: TableDef["sourceName"],
    column: ColumnName,
    spacetimeType: InferSpacetimeTypeOfColumn<TableDef, ColumnName>,
    columnName: string = column,
  ) {
    this.table = table;
    this.column = column;
    this.columnName = columnName;
    this.spacetimeType = spacetimeType;
  }

  eq(literal: LiteralValue & RowType<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  eq<OtherCol extends ColumnExpr<any, any>>(
    value: ColumnSameSpacetime<TableDef, ColumnName, OtherCol>,
  ): BooleanExpr<TableDef | ExtractTable<OtherCol>>;
  eq(value: unknown): BooleanExpr<any> {
    return compareColumn("eq", this, value);
  }

  ne(literal: LiteralValue & RowType<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  ne<OtherCol extends ColumnExpr<any, any>>(
    value: ColumnSameSpacetime<TableDef, ColumnName, OtherCol>,
  ): BooleanExpr<TableDef | ExtractTable<OtherCol>>;
  ne(value: unknown): BooleanExpr<any> {
    return compareColumn("ne", this, value);
  }

  lt(literal: LiteralValue & RowType<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  lt<OtherCol extends ColumnExpr<any, any>>(
    value: ColumnSameSpacetime<TableDef, ColumnName, OtherCol>,
  ): BooleanExpr<TableDef | ExtractTable<OtherCol>>;
  lt(value: unknown): BooleanExpr<any> {
    return compareColumn("lt", this, value);
  }

  lte(literal: LiteralValue & RowType<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  lte<OtherCol extends ColumnExpr<any, any>>(
    value: ColumnSameSpacetime<TableDef, ColumnName, OtherCol>,
  ): BooleanExpr<TableDef | ExtractTable<OtherCol>>;
  lte(value: unknown): BooleanExpr<any> {
    return compareColumn("lte", this, value);
  }

  gt(literal: LiteralValue & RowType<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  gt<OtherCol extends ColumnExpr<any, any>>(
    value: ColumnSameSpacetime<TableDef, ColumnName, OtherCol>,
  ): BooleanExpr<TableDef | ExtractTable<OtherCol>>;
  gt(value: unknown): BooleanExpr<any> {
    return compareColumn("gt", this, value);
  }

  gte(literal: LiteralValue & RowType<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  gte<OtherCol extends ColumnExpr<any, any>>(
    value: ColumnSameSpacetime<TableDef, ColumnName, OtherCol>,
  ): BooleanExpr<TableDef | ExtractTable<OtherCol>>;
  gte(value: unknown): BooleanExpr<any> {
    return compareColumn("gte", this, value);
  }
}

function compareColumn(type: Comparison, left: ColumnExpression<any, any>, right: unknown): BooleanExpr<any> {
  const operand = right instanceof ColumnExpression ? right : literal(right as LiteralValue);
  return new BooleanExpr({ type, left, right: operand } as BooleanExprData<any>);
}

/** Columns of a table whose type is compatible with `Value`. */
export type ColumnExprForValue<Table extends TypedTableDef, Value> = {
  [C in ColumnNames<Table>]: InferSpacetimeTypeOfColumn<Table, C> extends Value
    ? ColumnExpr<Table, C>
    : never;
}[ColumnNames<Table>];

export type ValueExpr<TableDef extends TypedTableDef, Value> =
  | LiteralExpr<Value & LiteralValue>
  | ColumnExprForValue<TableDef, Value>;

export function literal<Value extends LiteralValue>(value: Value): ValueExpr<never, Value> {
  return { type: "literal", value } as ValueExpr<never, Value>;
}

type BooleanExprData<Table extends TypedTableDef> = (
  | { type: Comparison; left: ValueExpr<Table, any>; right: ValueExpr<Table, any> }
  | {
      type: "and" | "or";
      clauses: readonly [BooleanExprData<Table>, BooleanExprData<Table>, ...BooleanExprData<Table>[]];
    }
  | { type: "not"; clause: BooleanExprData<Table> }
) & { _tableType?: Table };

type AndOrMixedTableScopeError = {
  readonly "Cannot combine predicates from different table scopes with and/or. In semijoin on(...), keep only the join equality and move extra predicates to .where(...).": never;
};

type RequireSameAndOrTable<Expected extends TypedTableDef, Actual extends TypedTableDef> = [
  Expected,
] extends [Actual]
  ? [Actual] extends [Expected]
    ? unknown
    : AndOrMixedTableScopeError
  : AndOrMixedTableScopeError;

/** A condition on rows of a table. */
export class BooleanExpr<Table extends TypedTableDef> {
  readonly data: BooleanExprData<Table>;

  constructor(data: BooleanExprData<Table>) {
    this.data = data;
  }

  and<OtherTable extends TypedTableDef>(
    other: BooleanExpr<OtherTable> & RequireSameAndOrTable<Table, OtherTable>,
  ): BooleanExpr<Table> {
    return combine("and", [this, other]);
  }

  or<OtherTable extends TypedTableDef>(
    other: BooleanExpr<OtherTable> & RequireSameAndOrTable<Table, OtherTable>,
  ): BooleanExpr<Table> {
    return combine("or", [this, other]);
  }

  not(): BooleanExpr<Table> {
    return not(this);
  }
}

function combine(type: "and" | "or", expressions: readonly BooleanExpr<any>[]): BooleanExpr<any> {
  const clauses = expressions.map(({ data }) => data) as unknown as [
    BooleanExprData<any>,
    BooleanExprData<any>,
  ];
  return new BooleanExpr({ type, clauses });
}

export function not<T extends TypedTableDef>(clause: BooleanExpr<T>): BooleanExpr<T> {
  return new BooleanExpr<T>({ type: "not", clause: clause.data } as BooleanExprData<T>);
}

export function and<Table extends TypedTableDef, OtherTable extends TypedTableDef>(
  first: BooleanExpr<Table>,
  second: BooleanExpr<OtherTable> & RequireSameAndOrTable<Table, OtherTable>,
  ...rest: readonly BooleanExpr<Table>[]
): BooleanExpr<Table> {
  return combine("and", [first, second, ...rest]);
}

export function or<Table extends TypedTableDef, OtherTable extends TypedTableDef>(
  first: BooleanExpr<Table>,
  second: BooleanExpr<OtherTable> & RequireSameAndOrTable<Table, OtherTable>,
  ...rest: readonly BooleanExpr<Table>[]
): BooleanExpr<Table> {
  return combine("or", [first, second, ...rest]);
}

type PredicateExpr<TableDef extends TypedTableDef> =
  | BooleanExpr<TableDef>
  | ColumnExprForValue<TableDef, BoolType>
  | boolean;

/** A bare boolean, or a boolean column, as a condition. */
function asCondition(predicate: unknown): BooleanExpr<any> {
  if (predicate instanceof BooleanExpr) return predicate;
  if (predicate instanceof ColumnExpression) return compareColumn("eq", predicate, true);
  return new BooleanExpr({
    type: "eq",
    left: literal(predicate as boolean),
    right: literal(true),
  } as BooleanExprData<any>);
}

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

type SemijoinBuilder<TableDef extends TypedTableDef> = RowTypedQuery<RowType<TableDef>, TableDef["rowType"]> &
  Readonly<{
    toSql(): string;
    where(predicate: (row: RowExpr<TableDef>) => PredicateExpr<TableDef>): SemijoinBuilder<TableDef>;
    /** @deprecated The builder is a query already. */
    build(): Query<TableDef>;
  }>;

type From<TableDef extends TypedTableDef> = RowTypedQuery<RowType<TableDef>, TableDef["rowType"]> &
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

// SQL --------------------------------------------------------------------------------------------------------------

export const isRowTypedQuery = (value: unknown): value is RowTypedQuery<any, any> =>
  typeof value === "object" && value !== null && QueryBrand in value;

export const isTypedQuery = (value: unknown): value is TableTypedQuery<any> => isRowTypedQuery(value);

/** The SQL text of a query. */
export function toSql(query: Query<any>): string {
  return (query as unknown as { toSql(): string }).toSql();
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function quoteTable(name: string): string {
  return name.split(".").map(quote).join(".");
}

function whereSql(condition: BooleanExpr<any> | undefined): string {
  return condition ? ` WHERE ${conditionSql(condition.data)}` : "";
}

function conditionSql(data: BooleanExprData<any>): string {
  switch (data.type) {
    case "and":
    case "or":
      return data.clauses.map((clause) => `(${conditionSql(clause)})`).join(` ${data.type.toUpperCase()} `);
    case "not":
      return `NOT (${conditionSql(data.clause)})`;
    default:
      return `${operandSql(data.left)} ${OPERATORS[data.type]} ${operandSql(data.right)}`;
  }
}

function operandSql(operand: unknown): string {
  if (operand instanceof ColumnExpression) return `${quoteTable(operand.table)}.${quote(operand.columnName)}`;
  return literalSql((operand as LiteralExpr<unknown>).value);
}

function literalSql(value: unknown): string {
  switch (typeof value) {
    case "boolean":
      return value ? "TRUE" : "FALSE";
    case "number":
    case "bigint":
      return value.toString();
    case "string":
      return `'${value.replaceAll("'", "''")}'`;
  }
  if (value instanceof Identity || value instanceof ConnectionId) return `0x${value.toHexString()}`;
  if (value instanceof Timestamp) return `'${value.toISOString()}'`;
  if (value instanceof Uuid) return `0x${value.toString().replaceAll("-", "")}`;
  throw new TypeError(`a query cannot contain ${String(value)}`);
}

// Queries on this side ---------------------------------------------------------------------------------------------

/** A value of its own type that `<` and `===` compare as the database does. */
export function toComparableValue(value: any): any {
  if (value instanceof Identity) return value.__identity__;
  if (value instanceof ConnectionId) return value.__connection_id__;
  if (value instanceof Timestamp) return value.__timestamp_micros_since_unix_epoch__;
  if (value instanceof Uuid) return value.asBigInt();
  return value;
}

/** Whether a row fulfils a condition. */
export function evaluateBooleanExpr(expression: BooleanExpr<any>, row: Record<string, any>): boolean {
  return evaluate(expression.data, row);
}

function evaluate(data: BooleanExprData<any>, row: Record<string, any>): boolean {
  switch (data.type) {
    case "and":
      return data.clauses.every((clause) => evaluate(clause, row));
    case "or":
      return data.clauses.some((clause) => evaluate(clause, row));
    case "not":
      return !evaluate(data.clause, row);
  }
  const left = evaluateOperand(data.left, row);
  const right = evaluateOperand(data.right, row);
  switch (data.type) {
    case "eq":
      return left === right;
    case "ne":
      return left !== right;
    case "lt":
      return left < right;
    case "lte":
      return left <= right;
    case "gt":
      return left > right;
    case "gte":
      return left >= right;
  }
}

function evaluateOperand(operand: unknown, row: Record<string, any>): any {
  const value =
    operand instanceof ColumnExpression ? row[operand.column] : (operand as LiteralExpr<unknown>).value;
  const comparable = toComparableValue(value);
  // 5 and 5n are the same number; BigInt compares exactly with both.
  return typeof comparable === "number" && Number.isInteger(comparable) ? BigInt(comparable) : comparable;
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

/** The condition of a query, if it concerns the rows it returns only. */
export function getQueryWhereClause(query: any): BooleanExpr<any> | undefined {
  return query instanceof FromBuilder ? query.whereClause : undefined;
}
