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
  if (typeof value !== "object") return value;
  if (value instanceof Identity) return value.__identity__;
  if (value instanceof ConnectionId) return value.__connection_id__;
  if (value instanceof Timestamp) return value.__timestamp_micros_since_unix_epoch__;
  if (value instanceof Uuid) return value.asBigInt();
  return value;
}

/** Whether a row fulfils a condition. */
export function evaluateBooleanExpr(expression: BooleanExpr<any>, row: Record<string, any>): boolean {
  return compileCondition(expression)(row);
}

type Row = Record<string, any>;

/** The test of a condition, for many rows. */
export function compileCondition(expression: BooleanExpr<any>): (row: Row) => boolean {
  return compile(expression.data);
}

function compile(data: BooleanExprData<any>): (row: Row) => boolean {
  switch (data.type) {
    case "and": {
      const clauses = data.clauses.map(compile);
      return (row) => clauses.every((holds) => holds(row));
    }
    case "or": {
      const clauses = data.clauses.map(compile);
      return (row) => clauses.some((holds) => holds(row));
    }
    case "not": {
      const holds = compile(data.clause);
      return (row) => !holds(row);
    }
  }
  const compare = COMPARISONS[data.type];
  const [left, right] = [compileOperand(data.left), compileOperand(data.right)];
  return (row) => compare(left(row), right(row));
}

// 5 and 5n are the same number: `<` and `==` compare them exactly, `===` does not.
const COMPARISONS: Record<Comparison, (a: any, b: any) => boolean> = {
  eq: isEqual,
  ne: (a, b) => !isEqual(a, b),
  lt: (a, b) => a < b,
  lte: (a, b) => a <= b,
  gt: (a, b) => a > b,
  gte: (a, b) => a >= b,
};

function isEqual(a: any, b: any): boolean {
  // biome-ignore lint/suspicious/noDoubleEquals: a number and a bigint
  return a === b || (isNumeric(a) && isNumeric(b) && a == b);
}

function isNumeric(value: unknown): boolean {
  return typeof value === "number" || typeof value === "bigint";
}

function compileOperand(operand: unknown): (row: Row) => any {
  if (operand instanceof ColumnExpression) {
    const { column } = operand;
    return (row) => toComparableValue(row[column]);
  }
  const value = toComparableValue((operand as LiteralExpr<unknown>).value);
  return () => value;
}

/** A column that must have one value. */
export interface Equality {
  readonly column: string;
  /** As `equalityKey` makes it of the values of the column. */
  readonly key: unknown;
}

/** An equality that every row fulfilling the condition fulfils, if there is one. */
export function equalityOf(expression: BooleanExpr<any>): Equality | undefined {
  return findEquality(expression.data);
}

function findEquality(data: BooleanExprData<any>): Equality | undefined {
  if (data.type === "and") {
    for (const clause of data.clauses) {
      const found = findEquality(clause);
      if (found) return found;
    }
    return undefined;
  }
  if (data.type !== "eq") return undefined;
  const { left, right } = data as { left: unknown; right: unknown };
  if (left instanceof ColumnExpression) {
    if (right instanceof ColumnExpression) return undefined;
    return { column: left.column, key: equalityKey((right as LiteralExpr<unknown>).value) };
  }
  return right instanceof ColumnExpression
    ? { column: right.column, key: equalityKey((left as LiteralExpr<unknown>).value) }
    : undefined;
}

/** One key of a map for all values that a condition takes for equal. */
export function equalityKey(value: unknown): unknown {
  const comparable = toComparableValue(value);
  if (typeof comparable !== "bigint") return comparable;
  const number = Number(comparable);
  return Number.isSafeInteger(number) ? number : comparable;
}
