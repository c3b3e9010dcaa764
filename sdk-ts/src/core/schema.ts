// Schemas: the tables of a module by name, and the definition of a module as it is collected.

import type { Product } from "./algebraic_type_variants";
import { badValue } from "./errors";
import type { IndexAlgorithm, IndexDef } from "./indexes";
import {
  type ExplicitNameEntry,
  emptyModuleDef,
  type RawModuleDefV10,
  type RawScopedTypeNameV10,
  type RawTableDefV10,
} from "./module_def";
import { resolve } from "./shapes";
import type { AnyTableDef, AnyTableSchema } from "./table";
import { defineTable, type TableParts } from "./table_definition";
import {
  ArrayBuilder,
  OptionBuilder,
  ProductBuilder,
  RefBuilder,
  ResultBuilder,
  RowBuilder,
  SumBuilder,
} from "./type_builders";
import type { Infer, InferSpacetimeTypeOfTypeBuilder } from "./type_inference";
import type { AlgebraicTypeType, ProductTypeType } from "./type_tree";
import type { FieldOf } from "./type_util";
import type { AnyColumn, AnyRef, AnyRowBuilder, AnyTypeBuilder } from "./untyped_builders";

/** The tables of a schema, and those of its submodules. */
export interface AnySchema {
  tables: Record<string, AnyTableDef>;
  namespaces?: Record<string, AnySchema>;
}

/** Any table of a schema. */
export type TableOf<Schema extends AnySchema> = FieldOf<Schema["tables"]>;

/** The accessor names of the tables of a schema. */
export type AccessorsOf<Schema extends AnySchema> = TableOf<Schema>["accessorName"];

/** A schema of tables. It says nothing about submodules, so that only those of a schema are known by name. */
export interface SchemaOf<Tables extends Record<string, AnyTableSchema>> {
  tables: { readonly [Name in keyof Tables & string]: TableDefOf<Name, Tables[Name]> };
}

/** The result of `table()`, with its name in a schema. */
export interface TableDefOf<Name extends string, Made extends AnyTableSchema> extends AnyTableDef {
  accessorName: Name;
  rowType: Made["rowSpacetimeType"];
  columns: Made["rowType"]["row"];
  constraints: Made["constraints"];
  indexes: Made["idxs"];
  resolvedIndexes: readonly IndexDef<keyof Made["rowType"]["row"] & string>[];
}

/** Registers tables, and gives what the rest of the SDK knows about them. */
export function registerTables(
  definition: DefinitionBuilder,
  tables: Record<string, AnyTableSchema>,
): AnySchema["tables"] {
  const known: AnySchema["tables"] = {};
  for (const [name, made] of Object.entries(tables)) {
    const tableDef = made.tableDef(definition, name);
    definition.moduleDef.tables.push(tableDef);
    known[name] = tableDefOf(name, made, tableDef);
  }
  return known;
}

function tableDefOf(accessorName: string, made: AnyTableSchema, tableDef: RawTableDefV10): AnyTableDef {
  const { row } = made.rowType;
  return {
    accessorName,
    sourceName: made.tableName ?? accessorName,
    rowType: made.rowSpacetimeType,
    columns: row,
    constraints: made.constraints as AnyTableDef["constraints"],
    indexes: made.idxs,
    resolvedIndexes: resolvedIndexes(tableDef, Object.keys(row)),
    tableDef,
    ...(tableDef.isEvent ? { isEvent: true } : {}),
  };
}

function resolvedIndexes({ indexes, constraints }: RawTableDefV10, names: readonly string[]): IndexDef[] {
  const unique = new Set<number>();
  for (const { data } of constraints) {
    const [first, ...others] = data.value.columns;
    if (others.length === 0) unique.add(first!);
  }
  return indexes.map(({ accessorName, algorithm }) => {
    const positions = algorithm.tag === "Direct" ? [algorithm.value] : algorithm.value;
    return {
      name: accessorName!,
      columns: positions.map((position) => names[position]!),
      algorithm: algorithm.tag.toLowerCase() as IndexAlgorithm,
      unique: positions.length === 1 && unique.has(positions[0]!),
    };
  });
}

/** The builder of a type that has its place in the typespace, if it is one that has. */
type Registered<Builder extends AnyTypeBuilder> = Builder extends
  | AnyRowBuilder
  | ProductBuilder<any>
  | SumBuilder<any>
  ? RefBuilder<Infer<Builder>, InferSpacetimeTypeOfTypeBuilder<Builder>>
  : Builder;

/** Collects the definition of a module. */
export class DefinitionBuilder {
  readonly #moduleDef: RawModuleDefV10 = emptyModuleDef();
  /** Types that have a place in the typespace, by the type in their builder: a lazy type has the same as the one it stands for. */
  readonly #refs = new Map<AlgebraicTypeType, AnyRef>();

  get moduleDef(): RawModuleDefV10 {
    return this.#moduleDef;
  }

  get typespace(): RawModuleDefV10["typespace"] {
    return this.#moduleDef.typespace;
  }

  addExplicitName(tag: ExplicitNameEntry["tag"], sourceName: string, canonicalName: string): void {
    this.#moduleDef.explicitNames.entries.push({ tag, value: { sourceName, canonicalName } });
  }

  /** Registers the types and names of a table; gives its definition. */
  tableDefinition(parts: TableParts, accName: string): RawTableDefV10 {
    return defineTable(parts, this, accName);
  }

  /** The product in the typespace for which a reference stands. */
  productOf({ ref }: AnyRef): ProductTypeType {
    return (resolve(ref, this.typespace) as Product).value;
  }

  /**
   * Gives a product, sum or row, and every such type in it, a place in the typespace and a name; other types stay as they
   * are, with references in them.
   */
  register<Builder extends AnyTypeBuilder>(builder: Builder): Registered<Builder> {
    return this.#registered(builder) as Registered<Builder>;
  }

  #registered(builder: AnyTypeBuilder): AnyTypeBuilder {
    if (builder instanceof ProductBuilder) {
      return this.#place(builder, "ProductBuilder", (type) => {
        for (const [name, field] of Object.entries<AnyTypeBuilder>(builder.elements)) {
          type.value.elements.push({ name, algebraicType: this.#registered(field).algebraicType });
        }
      });
    }
    if (builder instanceof RowBuilder) {
      return this.#place(builder, "RowBuilder", (type) => {
        for (const [name, column] of Object.entries<AnyColumn>(builder.row)) {
          type.value.elements.push({
            name,
            algebraicType: this.#registered(column.typeBuilder).algebraicType,
          });
        }
      });
    }
    if (builder instanceof SumBuilder) {
      return this.#place(builder, "SumBuilder", (type) => {
        for (const [name, variant] of Object.entries<AnyTypeBuilder>(builder.variants)) {
          type.value.variants.push({ name, algebraicType: this.#registered(variant).algebraicType });
        }
      });
    }
    if (builder instanceof OptionBuilder) return new OptionBuilder(this.#registered(builder.value));
    if (builder instanceof ResultBuilder) {
      return new ResultBuilder(this.#registered(builder.ok), this.#registered(builder.err));
    }
    if (builder instanceof ArrayBuilder) return new ArrayBuilder(this.#registered(builder.element));
    return builder;
  }

  #place(
    builder: AnyTypeBuilder & { typeName: string | undefined },
    kind: string,
    fill: (type: any) => void,
  ): AnyRef {
    const known = this.#refs.get(builder.algebraicType);
    if (known !== undefined) return known;
    const { typeName } = builder;
    if (typeName === undefined) {
      throw badValue(
        `Missing type name for ${kind}: a type inside of another one needs a name, as in t.row("Name", {...})`,
      );
    }
    const { types } = this.typespace;
    const ref = new RefBuilder<any, any>(types.length);
    const type: AlgebraicTypeType =
      builder instanceof SumBuilder
        ? { tag: "Sum", value: { variants: [] } }
        : { tag: "Product", value: { elements: [] } };
    this.#refs.set(builder.algebraicType, ref);
    types.push(type);
    fill(type);
    this.#moduleDef.types.push({ sourceName: splitName(typeName), ty: ref.ref, customOrdering: true });
    return ref;
  }

  /** The parameters of a function, with references to the types they name. */
  paramsType(params: AnyRowBuilder): ProductTypeType {
    return {
      elements: Object.entries<AnyColumn>(params.row).map(([name, column]) => ({
        name,
        algebraicType: this.#registered(column.typeBuilder).algebraicType,
      })),
    };
  }
}

/** `a.b.C` as name `C` in scope `a`, `b`. */
export function splitName(name: string): RawScopedTypeNameV10 {
  const parts = name.split(".");
  return { sourceName: parts.at(-1)!, scope: parts.slice(0, -1) };
}
