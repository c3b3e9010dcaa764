// Columns and conditions of typed queries: as SQL, and as a test of rows on this side.

import type { Bool as BoolType } from "./algebraic_type_variants";
import type { ColumnBuilder, ColumnMetadata } from "./column_builders";
import { ConnectionId } from "./connection_id";
import { Identity } from "./identity";
import type { IndexOpts } from "./indexes";
import { Timestamp } from "./timestamp";
import type { RowBuilder, TypeBuilder } from "./type_builders";
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

export type QueryRow<TableDef extends TypedTableDef> = {
  [K in keyof TableDef["columns"]]: TableDef["columns"][K] extends ColumnBuilder<infer T, any, any>
    ? T
    : never;
};

export type ColumnNames<TableDef extends TypedTableDef> = keyof QueryRow<TableDef> & string;

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
  declare readonly tsValueType?: QueryRow<TableDef>[ColumnName];
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

  eq(literal: LiteralValue & QueryRow<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  eq<OtherCol extends ColumnExpr<any, any>>(
    value: ColumnSameSpacetime<TableDef, ColumnName, OtherCol>,
  ): BooleanExpr<TableDef | ExtractTable<OtherCol>>;
  eq(value: unknown): BooleanExpr<any> {
    return compareColumn("eq", this, value);
  }

  ne(literal: LiteralValue & QueryRow<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  ne<OtherCol extends ColumnExpr<any, any>>(
    value: ColumnSameSpacetime<TableDef, ColumnName, OtherCol>,
  ): BooleanExpr<TableDef | ExtractTable<OtherCol>>;
  ne(value: unknown): BooleanExpr<any> {
    return compareColumn("ne", this, value);
  }

  lt(literal: LiteralValue & QueryRow<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  lt<OtherCol extends ColumnExpr<any, any>>(
    value: ColumnSameSpacetime<TableDef, ColumnName, OtherCol>,
  ): BooleanExpr<TableDef | ExtractTable<OtherCol>>;
  lt(value: unknown): BooleanExpr<any> {
    return compareColumn("lt", this, value);
  }

  lte(literal: LiteralValue & QueryRow<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  lte<OtherCol extends ColumnExpr<any, any>>(
    value: ColumnSameSpacetime<TableDef, ColumnName, OtherCol>,
  ): BooleanExpr<TableDef | ExtractTable<OtherCol>>;
  lte(value: unknown): BooleanExpr<any> {
    return compareColumn("lte", this, value);
  }

  gt(literal: LiteralValue & QueryRow<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  gt<OtherCol extends ColumnExpr<any, any>>(
    value: ColumnSameSpacetime<TableDef, ColumnName, OtherCol>,
  ): BooleanExpr<TableDef | ExtractTable<OtherCol>>;
  gt(value: unknown): BooleanExpr<any> {
    return compareColumn("gt", this, value);
  }

  gte(literal: LiteralValue & QueryRow<TableDef>[ColumnName]): BooleanExpr<TableDef>;
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

/** @internal */
export function combine(type: "and" | "or", expressions: readonly BooleanExpr<any>[]): BooleanExpr<any> {
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

export type PredicateExpr<TableDef extends TypedTableDef> =
  | BooleanExpr<TableDef>
  | ColumnExprForValue<TableDef, BoolType>
  | boolean;

/** A bare boolean, or a boolean column, as a condition. */
export function asCondition(predicate: unknown): BooleanExpr<any> {
  if (predicate instanceof BooleanExpr) return predicate;
  if (predicate instanceof ColumnExpression) return compareColumn("eq", predicate, true);
  return new BooleanExpr({
    type: "eq",
    left: literal(predicate as boolean),
    right: literal(true),
  } as BooleanExprData<any>);
}

// As SQL -----------------------------------------------------------------------------------------------------------

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteTable(name: string): string {
  return name.split(".").map(quote).join(".");
}

export function whereSql(condition: BooleanExpr<any> | undefined): string {
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

export function operandSql(operand: unknown): string {
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

// On this side -----------------------------------------------------------------------------------------------------

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
