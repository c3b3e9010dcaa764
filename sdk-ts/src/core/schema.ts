import type { AlgebraicType, ProductTypeType } from "./algebraic_type";
import { resolve } from "./codec";
import { badValue } from "./errors";
import type { UntypedIndex } from "./indexes";
import {
  type CaseConversionPolicy,
  type ExplicitNameEntry,
  emptyModuleDef,
  type RawModuleDefV10,
  type RawScopedTypeNameV10,
  type RawSubmoduleV10,
  type RawTableDefV10,
} from "./module_def";
import type { TableSchema, UntypedTableDef, UntypedTableSchema } from "./table";
import {
  ArrayBuilder,
  type ColumnBuilder,
  OptionBuilder,
  ProductBuilder,
  RefBuilder,
  ResultBuilder,
  RowBuilder,
  SumBuilder,
  type TypeBuilder,
} from "./type_builders";
import type { Infer, InferSpacetimeTypeOfTypeBuilder } from "./type_inference";
import type { Values } from "./type_util";

/** The accessor names of the tables of a schema. */
export type TableNamesOf<S extends UntypedSchemaDef> = Values<S["tables"]>["accessorName"];

/** The tables of a schema, and those of its submodules. */
export type UntypedSchemaDef = {
  tables: Record<string, UntypedTableDef>;
  namespaces?: Record<string, UntypedSchemaDef>;
};

/** A schema of tables. It says nothing about submodules, so that only those of a schema are known by name. */
export interface TablesToSchema<T extends Record<string, UntypedTableSchema>> {
  tables: { readonly [AccName in keyof T & string]: TableToSchema<AccName, T[AccName]> };
}

export interface TableToSchema<AccName extends string, T extends UntypedTableSchema> extends UntypedTableDef {
  accessorName: AccName;
  columns: T["rowType"]["row"];
  rowType: T["rowSpacetimeType"];
  indexes: T["idxs"];
  resolvedIndexes: readonly UntypedIndex<keyof T["rowType"]["row"] & string>[];
  constraints: T["constraints"];
}

/** Registers tables, and gives what the rest of the SDK knows about them. */
export function tablesToSchema<const T extends Record<string, UntypedTableSchema>>(
  ctx: ModuleContext,
  tables: T,
): TablesToSchema<T> {
  return {
    tables: Object.fromEntries(
      Object.entries(tables).map(([accName, table]) => {
        const tableDef = table.tableDef(ctx, accName);
        ctx.moduleDef.tables.push(tableDef);
        return [accName, tableToSchema(accName, table, tableDef)];
      }),
    ),
  } as unknown as TablesToSchema<T>;
}

export function tableToSchema<AccName extends string, const T extends UntypedTableSchema>(
  accName: AccName,
  schema: T,
  tableDef: RawTableDefV10,
): TableToSchema<AccName, T> {
  const names = Object.keys(schema.rowType.row);
  const uniqueColumns = new Set(
    tableDef.constraints.filter((c) => c.data.value.columns.length === 1).map((c) => c.data.value.columns[0]),
  );
  const resolvedIndexes = tableDef.indexes.map(({ accessorName, algorithm }) => {
    const ids = algorithm.tag === "Direct" ? [algorithm.value] : algorithm.value;
    return {
      name: accessorName!,
      unique: ids.length === 1 && uniqueColumns.has(ids[0]),
      algorithm: algorithm.tag.toLowerCase() as "btree" | "hash" | "direct",
      columns: ids.map((id) => names[id]!),
    };
  });
  return {
    sourceName: schema.tableName ?? accName,
    accessorName: accName,
    columns: schema.rowType.row,
    rowType: schema.rowSpacetimeType,
    indexes: schema.idxs,
    resolvedIndexes,
    constraints: schema.constraints,
    tableDef,
    ...(tableDef.isEvent ? { isEvent: true } : {}),
  } as unknown as TableToSchema<AccName, T>;
}

export type ModuleDef = RawModuleDefV10;

/** Collects the definition of a module. */
export class ModuleContext {
  readonly #moduleDef: RawModuleDefV10 = emptyModuleDef();
  /** Types that have a place in the typespace, by the type in their builder: a lazy type has the same as the one it stands for. */
  readonly #refs = new Map<AlgebraicType, RefBuilder<any, any>>();

  get moduleDef(): ModuleDef {
    return this.#moduleDef;
  }

  rawModuleDefV10(): RawModuleDefV10 {
    return this.#moduleDef;
  }

  get typespace(): RawModuleDefV10["typespace"] {
    return this.#moduleDef.typespace;
  }

  addSubmodule(submodule: RawSubmoduleV10): void {
    this.#moduleDef.submodules.push(submodule);
  }

  addExplicitName(tag: ExplicitNameEntry["tag"], sourceName: string, canonicalName: string): void {
    this.#moduleDef.explicitNames.entries.push({ tag, value: { sourceName, canonicalName } });
  }

  setCaseConversionPolicy(policy: CaseConversionPolicy): void {
    this.#moduleDef.caseConversionPolicy = policy;
  }

  resolveType<AT extends AlgebraicType>(typeBuilder: RefBuilder<any, AT>): AT {
    return resolve(typeBuilder.ref, this.typespace) as AT;
  }

  /**
   * Gives a product, sum or row, and every such type in it, a place in the typespace and a name; other types stay as they
   * are, with references in them.
   */
  registerTypesRecursively<T extends TypeBuilder<any, any>>(
    typeBuilder: T,
  ): T extends SumBuilder<any> | ProductBuilder<any> | RowBuilder<any>
    ? RefBuilder<Infer<T>, InferSpacetimeTypeOfTypeBuilder<T>>
    : T {
    return this.#register(typeBuilder) as any;
  }

  #register(builder: TypeBuilder<any, any>): TypeBuilder<any, any> {
    if (builder instanceof ProductBuilder) {
      return this.#place(builder, "ProductBuilder", (type) => {
        for (const [name, field] of Object.entries<TypeBuilder<any, any>>(builder.elements)) {
          type.value.elements.push({ name, algebraicType: this.#register(field).algebraicType });
        }
      });
    }
    if (builder instanceof RowBuilder) {
      return this.#place(builder, "RowBuilder", (type) => {
        for (const [name, column] of Object.entries<ColumnBuilder<any, any, any>>(builder.row)) {
          type.value.elements.push({ name, algebraicType: this.#register(column.typeBuilder).algebraicType });
        }
      });
    }
    if (builder instanceof SumBuilder) {
      return this.#place(builder, "SumBuilder", (type) => {
        for (const [name, variant] of Object.entries<TypeBuilder<any, any>>(builder.variants)) {
          type.value.variants.push({ name, algebraicType: this.#register(variant).algebraicType });
        }
      });
    }
    if (builder instanceof OptionBuilder) return new OptionBuilder(this.#register(builder.value));
    if (builder instanceof ResultBuilder) {
      return new ResultBuilder(this.#register(builder.ok), this.#register(builder.err));
    }
    if (builder instanceof ArrayBuilder) return new ArrayBuilder(this.#register(builder.element));
    return builder;
  }

  #place(
    builder: TypeBuilder<any, any> & { typeName: string | undefined },
    kind: string,
    fill: (type: any) => void,
  ): RefBuilder<any, any> {
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
    const type: AlgebraicType =
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
  paramsType(params: RowBuilder<any>): ProductTypeType {
    return {
      elements: Object.entries<ColumnBuilder<any, any, any>>(params.row).map(([name, column]) => ({
        name,
        algebraicType: this.#register(column.typeBuilder).algebraicType,
      })),
    };
  }
}

/** `a.b.C` as name `C` in scope `a`, `b`. */
export function splitName(name: string): RawScopedTypeNameV10 {
  const scope = name.split(".");
  const sourceName = scope.pop()!;
  return { sourceName, scope };
}

export type { TableSchema };
