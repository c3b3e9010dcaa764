// The tables of a module, as generated bindings put them together.

import type {
  TablesToSchema,
  UntypedIndex,
  UntypedSchemaDef,
  UntypedTableDef,
  UntypedTableSchema,
} from "../core";

/** The tables of a module. */
export interface Tables<S extends UntypedSchemaDef> {
  readonly schemaType: S;
}

/** Puts the tables of a module together, by their accessor names. */
export function schema<const H extends Record<string, UntypedTableSchema>>(
  tables: H,
): Tables<TablesToSchema<H>> {
  const schemaType = {
    tables: Object.fromEntries(
      Object.entries(tables).map(([name, table]) => [name, tableDefOf(name, table)]),
    ),
  };
  return { schemaType: schemaType as unknown as TablesToSchema<H> };
}

function tableDefOf(accessorName: string, table: UntypedTableSchema): Omit<UntypedTableDef, "tableDef"> {
  return {
    sourceName: table.tableName ?? accessorName,
    accessorName,
    columns: table.rowType.row,
    rowType: table.rowSpacetimeType,
    indexes: table.idxs,
    constraints: table.constraints as UntypedTableDef["constraints"],
    resolvedIndexes: resolveIndexes(table),
    isEvent: table.isEvent === true,
  };
}

/** Indexes of single columns, then those of the table. */
function resolveIndexes(table: UntypedTableSchema): UntypedIndex<string>[] {
  const indexes = new Map<string, UntypedIndex<string>>();
  const unique = new Set<string>();
  for (const [name, { columnMetadata }] of Object.entries(table.rowType.row)) {
    const { isUnique, isPrimaryKey, indexType } = columnMetadata as {
      isUnique?: boolean;
      isPrimaryKey?: boolean;
      indexType?: UntypedIndex<string>["algorithm"];
    };
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

type HasAccessor = { accessorName: PropertyKey };

export type ConvertToAccessorMap<TableDefs extends readonly HasAccessor[]> = {
  [Tbl in TableDefs[number] as Tbl["accessorName"]]: Tbl;
};

/** Definitions by their accessor names. */
export function convertToAccessorMap<T extends readonly HasAccessor[]>(
  definitions: T,
): ConvertToAccessorMap<T> {
  return Object.fromEntries(
    definitions.map((definition) => [definition.accessorName, definition]),
  ) as ConvertToAccessorMap<T>;
}
