// The tables of a module, as generated bindings put them together.

import type { AnySchema, AnyTableDef, AnyTableSchema, ColumnMetadata, IndexDef, SchemaOf } from "../core";

/** The tables of a module. */
export interface Tables<S extends AnySchema> {
  readonly schemaType: S;
}

/** Puts the tables of a module together, by their accessor names. */
export function schema<const H extends Record<string, AnyTableSchema>>(tables: H): Tables<SchemaOf<H>> {
  const known: Record<string, ClientTableDef> = {};
  for (const [name, made] of Object.entries(tables)) known[name] = tableDefOf(name, made);
  return { schemaType: { tables: known } as SchemaOf<H> };
}

/** A table for clients, without its definition for the host. */
type ClientTableDef = Omit<AnyTableDef, "tableDef">;

function tableDefOf(accessorName: string, made: AnyTableSchema): ClientTableDef {
  return {
    accessorName,
    sourceName: made.tableName ?? accessorName,
    rowType: made.rowSpacetimeType,
    columns: made.rowType.row,
    isEvent: made.isEvent === true,
    takesArguments: made.takesArguments === true,
    constraints: made.constraints as AnyTableDef["constraints"],
    indexes: made.idxs,
    resolvedIndexes: resolveIndexes(made),
  };
}

/** Indexes of single columns, then those of the table. */
function resolveIndexes(table: AnyTableSchema): IndexDef[] {
  const indexes = new Map<string, IndexDef>();
  const unique = new Set<string>();
  for (const [name, { columnMetadata }] of Object.entries(table.rowType.row)) {
    const { isUnique, isPrimaryKey, indexType } = columnMetadata as ColumnMetadata;
    if (isUnique || isPrimaryKey) unique.add(name);
    if (!indexType && !unique.has(name)) continue;
    indexes.set(name, { name, unique: unique.has(name), algorithm: indexType ?? "btree", columns: [name] });
  }
  for (const index of table.idxs) {
    const columns = index.algorithm === "direct" ? [index.column] : index.columns;
    indexes.set(index.accessor, {
      name: index.accessor,
      // As the types have it: every column must be unique by itself.
      unique: columns.every((column) => unique.has(column)),
      algorithm: index.algorithm,
      columns,
    });
  }
  return [...indexes.values()];
}

type Named = { accessorName: PropertyKey };

/** Definitions by their accessor names. */
export type ConvertToAccessorMap<TableDefs extends readonly Named[]> = {
  [Def in TableDefs[number] as Def["accessorName"]]: Def;
};

/** Definitions by their accessor names. */
export function convertToAccessorMap<T extends readonly Named[]>(definitions: T): ConvertToAccessorMap<T> {
  const map: Record<PropertyKey, Named> = {};
  for (const definition of definitions) map[definition.accessorName] = definition;
  return map as ConvertToAccessorMap<T>;
}
