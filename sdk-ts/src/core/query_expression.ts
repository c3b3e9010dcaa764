// Columns and conditions of typed queries: as SQL, and as a test of rows on this side.

import type { Bool as BoolType } from "./algebraic_type_variants";
import type { ColumnBuilder } from "./column_builders";
import { ConnectionId } from "./connection_id";
import { Identity } from "./identity";
import type { ComparableSpecial } from "./special";
import type { AnyTableDef, RowProduct } from "./table";
import { Timestamp } from "./timestamp";
import type { TypeBuilder } from "./type_builders";
import { type AnyRow, known } from "./untyped";
import type { TypedColumn } from "./untyped_builders";
import type { Uuid } from "./uuid";

type TypedColumns = Record<string, TypedColumn>;

/** The part of a table that queries need. */
export type TypedTableDef<Columns extends TypedColumns = TypedColumns> = Pick<
  AnyTableDef,
  "sourceName" | "accessorName" | "indexes"
> & { columns: Columns; rowType: RowProduct<Columns> };

type ValueOfColumn<Column> = Column extends ColumnBuilder<infer Value, any, any> ? Value : never;

/** The values of a row. */
export type QueryRow<TableDef extends TypedTableDef> = {
  [Name in keyof TableDef["columns"]]: ValueOfColumn<TableDef["columns"][Name]>;
};

export type ColumnNames<TableDef extends TypedTableDef> = keyof TableDef["columns"] & string;

/** Values that have a literal in SQL. */
export type Literal = boolean | number | bigint | string | ComparableSpecial;
type LiteralOperand<Value> = { type: "literal"; value: Value };

/** The algebraic type of a column. */
type TypeOfColumn<
  TableDef extends TypedTableDef,
  Name extends ColumnNames<TableDef>,
> = TableDef["columns"][Name] extends { typeBuilder: TypeBuilder<any, infer Type> } ? Type : never;

/** A column as an expression. */
export type ColumnExpr<
  TableDef extends TypedTableDef,
  ColumnName extends ColumnNames<TableDef>,
> = ColumnExpression<TableDef, ColumnName>;

type TypeOfExpr<Expr> = Expr extends ColumnExpression<infer TableDef, infer Name>
  ? TypeOfColumn<TableDef, Name>
  : never;

type TableOfExpr<Expr> = Expr extends ColumnExpression<infer TableDef, any> ? TableDef : never;

/** `Yes` if each of two types fits where the other one does, otherwise `No`. */
type IfSame<A, B, Yes, No> = [A, B] extends [B, A] ? Yes : No;

/** A column of any table, if it has the type that is wanted. */
type Comparable<Wanted, Expr> = IfSame<Wanted, TypeOfExpr<Expr>, Expr, never>;

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
  readonly spacetimeType: TypeOfColumn<TableDef, ColumnName>;

  constructor(
    table: TableDef["sourceName"],
    column: ColumnName,
    spacetimeType: TypeOfColumn<TableDef, ColumnName>,
    columnName: string = column,
  ) {
    this.table = table;
    this.column = column;
    this.columnName = columnName;
    this.spacetimeType = spacetimeType;
  }

  eq(value: Literal & QueryRow<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  eq<Other extends AnyColumnExpr>(
    column: Comparable<TypeOfColumn<TableDef, ColumnName>, Other>,
  ): BooleanExpr<TableDef | TableOfExpr<Other>>;
  eq(operand: unknown): AnyCondition {
    return compareColumn("eq", this, operand);
  }

  ne(value: Literal & QueryRow<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  ne<Other extends AnyColumnExpr>(
    column: Comparable<TypeOfColumn<TableDef, ColumnName>, Other>,
  ): BooleanExpr<TableDef | TableOfExpr<Other>>;
  ne(operand: unknown): AnyCondition {
    return compareColumn("ne", this, operand);
  }

  lt(value: Literal & QueryRow<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  lt<Other extends AnyColumnExpr>(
    column: Comparable<TypeOfColumn<TableDef, ColumnName>, Other>,
  ): BooleanExpr<TableDef | TableOfExpr<Other>>;
  lt(operand: unknown): AnyCondition {
    return compareColumn("lt", this, operand);
  }

  lte(value: Literal & QueryRow<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  lte<Other extends AnyColumnExpr>(
    column: Comparable<TypeOfColumn<TableDef, ColumnName>, Other>,
  ): BooleanExpr<TableDef | TableOfExpr<Other>>;
  lte(operand: unknown): AnyCondition {
    return compareColumn("lte", this, operand);
  }

  gt(value: Literal & QueryRow<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  gt<Other extends AnyColumnExpr>(
    column: Comparable<TypeOfColumn<TableDef, ColumnName>, Other>,
  ): BooleanExpr<TableDef | TableOfExpr<Other>>;
  gt(operand: unknown): AnyCondition {
    return compareColumn("gt", this, operand);
  }

  gte(value: Literal & QueryRow<TableDef>[ColumnName]): BooleanExpr<TableDef>;
  gte<Other extends AnyColumnExpr>(
    column: Comparable<TypeOfColumn<TableDef, ColumnName>, Other>,
  ): BooleanExpr<TableDef | TableOfExpr<Other>>;
  gte(operand: unknown): AnyCondition {
    return compareColumn("gte", this, operand);
  }
}

function compareColumn(type: Comparison, left: AnyColumnExpr, right: unknown): AnyCondition {
  const operand = right instanceof ColumnExpression ? right : literal(right as Literal);
  return new BooleanExpr({ type, left, right: operand } as AnyClause);
}

/** Columns of a table whose type is compatible with `Value`. */
export type ColumnExprForValue<Table extends TypedTableDef, Value> = {
  [C in ColumnNames<Table>]: TypeOfColumn<Table, C> extends Value ? ColumnExpr<Table, C> : never;
}[ColumnNames<Table>];

/** A value or a column. */
export type ValueExpr<TableDef extends TypedTableDef, Value> =
  | LiteralOperand<Value & Literal>
  | ColumnExprForValue<TableDef, Value>;

/** A value as an expression. */
export function literal<Value extends Literal>(value: Value): ValueExpr<never, Value> {
  return { type: "literal", value } as ValueExpr<never, Value>;
}

/** A condition as data: a comparison, or conditions put together. */
type Condition<Table extends TypedTableDef> = { _tableType?: Table } & (
  | { type: "not"; clause: Condition<Table> }
  | { type: "and" | "or"; clauses: readonly [Condition<Table>, Condition<Table>, ...Condition<Table>[]] }
  | { type: Comparison; left: ValueExpr<Table, any>; right: ValueExpr<Table, any> }
);

type AnyClause = Condition<any>;

/** The compiler shows this where `and` or `or` puts conditions on different tables together. */
interface ConditionsOnDifferentTables {
  readonly "Both conditions must be on the same table: of a semijoin, compare two columns in on(...), and put the rest into .where(...)": never;
}

/** Anything, if both conditions are on the same table. */
type OnSameTable<Table, Other> = IfSame<Table, Other, unknown, ConditionsOnDifferentTables>;

/** A condition on rows of a table. */
export class BooleanExpr<Table extends TypedTableDef> {
  readonly data: Condition<Table>;

  constructor(data: Condition<Table>) {
    this.data = data;
  }

  and<OtherTable extends TypedTableDef>(
    other: BooleanExpr<OtherTable> & OnSameTable<Table, OtherTable>,
  ): BooleanExpr<Table> {
    return combine("and", [this, other]);
  }

  or<OtherTable extends TypedTableDef>(
    other: BooleanExpr<OtherTable> & OnSameTable<Table, OtherTable>,
  ): BooleanExpr<Table> {
    return combine("or", [this, other]);
  }

  not(): BooleanExpr<Table> {
    return not(this);
  }
}

/** @internal */
export function combine(type: "and" | "or", expressions: readonly AnyCondition[]): AnyCondition {
  const clauses = known<[AnyClause, AnyClause]>(expressions.map(({ data }) => data));
  return new BooleanExpr({ type, clauses });
}

/** The opposite of a condition. */
export function not<T extends TypedTableDef>(clause: BooleanExpr<T>): BooleanExpr<T> {
  return new BooleanExpr<T>({ type: "not", clause: clause.data } as Condition<T>);
}

/** All of the conditions. */
export function and<Table extends TypedTableDef, OtherTable extends TypedTableDef>(
  first: BooleanExpr<Table>,
  second: BooleanExpr<OtherTable> & OnSameTable<Table, OtherTable>,
  ...rest: readonly BooleanExpr<Table>[]
): BooleanExpr<Table> {
  return combine("and", [first, second, ...rest]);
}

/** One of the conditions at least. */
export function or<Table extends TypedTableDef, OtherTable extends TypedTableDef>(
  first: BooleanExpr<Table>,
  second: BooleanExpr<OtherTable> & OnSameTable<Table, OtherTable>,
  ...rest: readonly BooleanExpr<Table>[]
): BooleanExpr<Table> {
  return combine("or", [first, second, ...rest]);
}

export type PredicateExpr<TableDef extends TypedTableDef> =
  | BooleanExpr<TableDef>
  | ColumnExprForValue<TableDef, BoolType>
  | boolean;

/** A bare boolean, or a boolean column, as a condition. */
export function asCondition(predicate: unknown): AnyCondition {
  if (predicate instanceof BooleanExpr) return predicate;
  if (predicate instanceof ColumnExpression) return compareColumn("eq", predicate, true);
  return new BooleanExpr({
    type: "eq",
    left: literal(predicate as boolean),
    right: literal(true),
  } as AnyClause);
}

// As SQL -----------------------------------------------------------------------------------------------------------

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteTable(name: string): string {
  return name.split(".").map(quote).join(".");
}

export function whereSql(condition: AnyCondition | undefined): string {
  return condition ? ` WHERE ${conditionSql(condition.data)}` : "";
}

function conditionSql(data: AnyClause): string {
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
  return literalSql((operand as LiteralOperand<unknown>).value);
}

/** By its field: with the class, every page with a query would load what makes UUIDs. */
function isUuid(value: unknown): value is Uuid {
  return (value as Uuid | null)?.__uuid__ !== undefined;
}

/** @internal */
export function literalSql(value: unknown): string {
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
  if (isUuid(value)) return `0x${value.toHexString()}`;
  throw new TypeError(`a query cannot contain ${String(value)}`);
}

// On this side -----------------------------------------------------------------------------------------------------

/** A value of its own type that `<` and `===` compare as the database does. */
export function toComparableValue(value: any): any {
  if (typeof value !== "object") return value;
  if (value instanceof Identity) return value.__identity__;
  if (value instanceof ConnectionId) return value.__connection_id__;
  if (value instanceof Timestamp) return value.__timestamp_micros_since_unix_epoch__;
  if (isUuid(value)) return value.__uuid__;
  return value;
}

/** Whether a row fulfils a condition. */
export function evaluateBooleanExpr(expression: AnyCondition, row: AnyRow): boolean {
  return compileCondition(expression)(row);
}

/** The test of a condition, for many rows. */
export function compileCondition(expression: AnyCondition): (row: AnyRow) => boolean {
  return compile(expression.data);
}

function compile(data: AnyClause): (row: AnyRow) => boolean {
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

/** The result of `toComparableValue` for the values of a column. */
type Operand = bigint | number | string | boolean;

// 5 and 5n are the same number: `<` and `==` compare them exactly, `===` does not.
const COMPARISONS: Record<Comparison, (a: Operand, b: Operand) => boolean> = {
  eq: isEqual,
  ne: (a, b) => !isEqual(a, b),
  lt: (a, b) => a < b,
  lte: (a, b) => a <= b,
  gt: (a, b) => a > b,
  gte: (a, b) => a >= b,
};

function isEqual(a: Operand, b: Operand): boolean {
  // biome-ignore lint/suspicious/noDoubleEquals: a number and a bigint
  return a === b || (isNumeric(a) && isNumeric(b) && a == b);
}

function isNumeric(value: unknown): boolean {
  return typeof value === "number" || typeof value === "bigint";
}

function compileOperand(operand: unknown): (row: AnyRow) => Operand {
  if (operand instanceof ColumnExpression) {
    const { column } = operand;
    return (row) => toComparableValue(row[column]);
  }
  const value = toComparableValue((operand as LiteralOperand<unknown>).value);
  return () => value;
}

/** A column that must have one value. */
export interface Equality {
  readonly column: string;
  /** As `equalityKey` makes it of the values of the column. */
  readonly key: unknown;
}

/** An equality that every row fulfilling the condition fulfils, if there is one. */
export function equalityOf(expression: AnyCondition): Equality | undefined {
  return findEquality(expression.data);
}

function findEquality(data: AnyClause): Equality | undefined {
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
    return { column: left.column, key: equalityKey((right as LiteralOperand<unknown>).value) };
  }
  return right instanceof ColumnExpression
    ? { column: right.column, key: equalityKey((left as LiteralOperand<unknown>).value) }
    : undefined;
}

/** One key of a map for all values that a condition takes for equal. */
export function equalityKey(value: unknown): unknown {
  const comparable = toComparableValue(value);
  if (typeof comparable !== "bigint") return comparable;
  const number = Number(comparable);
  return Number.isSafeInteger(number) ? number : comparable;
}

/** A column in a query, whatever its type. */
export type AnyColumnExpr = ColumnExpression<any, any>;
/** A condition on rows of any table. */
export type AnyCondition = BooleanExpr<any>;
