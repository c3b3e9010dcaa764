// From what `table()` was given to the definition of a table for the host. Clients do not load this file.

import { BinaryWriter } from "./binary_writer";
import { badValue } from "./errors";
import type { IndexAlgorithm } from "./indexes";
import type { RawIndexDefV10, RawTableDefV10 } from "./module_def";
import { toPascalCase } from "./names";
import type { DefinitionBuilder } from "./schema";
import type { AnyTableSchema, TableOpts } from "./table";
import type { AnyRowBuilder, TypedColumn } from "./untyped_builders";

/** The arguments of `table()`, prepared for the definition. */
export interface TableParts {
  readonly opts: TableOpts<any>;
  readonly rowType: AnyRowBuilder;
  readonly columns: readonly (readonly [name: string, column: TypedColumn])[];
  readonly constraints: AnyTableSchema["constraints"];
}

const ALGORITHMS = { btree: "BTree", hash: "Hash", direct: "Direct" } as const;

/** The positions of columns in a row; `user` says in an error who names a column that does not exist. */
function positionsOf({ columns }: TableParts, names: readonly string[], user: string): number[] {
  return names.map((wanted) => {
    const position = columns.findIndex(([name]) => name === wanted);
    if (position < 0) throw badValue(`${user} names a column ${wanted} that does not exist`);
    return position;
  });
}

function indexDefinition(
  parts: TableParts,
  table: string,
  accessorName: string,
  algorithm: IndexAlgorithm,
  names: readonly string[],
): RawIndexDefV10 {
  const value = positionsOf(parts, names, `index ${accessorName} of table ${table}`);
  const tag = ALGORITHMS[algorithm];
  return {
    sourceName: `${table}_${names.join("_")}_idx_${algorithm}`,
    accessorName,
    algorithm: tag === "Direct" ? { tag, value: value[0]! } : { tag, value },
  };
}

function uniqueConstraint(
  name: string | undefined,
  columns: number[],
): RawTableDefV10["constraints"][number] {
  return { sourceName: name, data: { tag: "Unique", value: { columns } } };
}

/** Adds what a column says of itself to the definition of its table. */
function addColumn(parts: TableParts, def: RawTableDefV10, position: number): void {
  const [name, column] = parts.columns[position]!;
  const { isPrimaryKey, isUnique, isAutoIncrement, indexType } = column.columnMetadata;
  const isKey = isPrimaryKey || isUnique;
  if (isPrimaryKey) def.primaryKey.push(position);
  if (indexType || isKey) {
    def.indexes.push(indexDefinition(parts, def.sourceName, name, indexType ?? "btree", [name]));
  }
  if (isKey) def.constraints.push(uniqueConstraint(undefined, [position]));
  if (isAutoIncrement) {
    const bounds = { start: undefined, minValue: undefined, maxValue: undefined };
    def.sequences.push({ sourceName: undefined, column: position, increment: 1n, ...bounds });
  }
  if (Object.hasOwn(column.columnMetadata, "defaultValue")) {
    const writer = new BinaryWriter(16);
    column.serialize(writer, column.columnMetadata.defaultValue);
    def.defaultValues.push({ colId: position, value: writer.getBuffer() });
  }
}

/** Registers the types and names of a table; gives its definition. */
export function defineTable(
  parts: TableParts,
  definition: DefinitionBuilder,
  accName: string,
): RawTableDefV10 {
  const { opts, rowType, columns, constraints } = parts;
  rowType.typeName ??= toPascalCase(opts.name ?? accName);
  const def: RawTableDefV10 = {
    sourceName: accName,
    productTypeRef: definition.register(rowType).ref,
    primaryKey: [],
    indexes: [],
    constraints: [],
    sequences: [],
    tableType: { tag: "User" },
    tableAccess: { tag: opts.public ? "Public" : "Private" },
    defaultValues: [],
    isEvent: opts.event ?? false,
  };
  for (const position of columns.keys()) addColumn(parts, def, position);
  for (const index of opts.indexes ?? []) {
    const names = index.algorithm === "direct" ? [index.column] : index.columns;
    const made = indexDefinition(parts, accName, index.accessor, index.algorithm, names);
    def.indexes.push(made);
    if (index.name !== undefined) definition.addExplicitName("Index", made.sourceName!, index.name);
  }
  for (const { name, columns: names } of constraints) {
    const positions = positionsOf(parts, names, `a constraint of table ${accName}`);
    def.constraints.push(uniqueConstraint(name, positions));
  }
  if (opts.name !== undefined) definition.addExplicitName("Table", accName, opts.name);
  return def;
}
