// From the schema that a server sends (version 10, spec 02 §15.1) to what generated bindings say of a module.

import {
  type AlgebraicType,
  type AnyModule,
  ClientError,
  ColumnBuilder,
  type ColumnMetadata,
  RowBuilder,
  schema,
  TypeBuilder,
  table,
  toCamelCase,
  toPascalCase,
} from "../client";
import { sumShape } from "../core/shapes";

/** The JSON of one thing; what is missing in it is an error of the server. */
type Json = any;

/** A module for a connection, and its tables that only the owner reads. */
export interface ReadModule {
  module: AnyModule;
  privateTables: ReadonlySet<string>;
}

/** The definitions in a schema. */
export function remoteModuleOf(json: unknown): ReadModule {
  const sections = sectionsOf(json);
  if (!sections.Typespace || !sections.ExplicitNames) {
    const message =
      "this is no schema of version 10 with the names of the sources; the server is too old: use generated bindings";
    throw new ClientError("LC0860", message);
  }
  try {
    const { tables, reducers, procedures, privateTables } = new SchemaReader(sections).read();
    const { schemaType } = schema(tables);
    const module = { versionInfo: { cliVersion: "" }, ...schemaType, reducers, procedures };
    return { module: module as unknown as AnyModule, privateTables: new Set(privateTables) };
  } catch (cause) {
    throw new ClientError("LC0860", "the schema cannot be read", { cause });
  }
}

const sectionsOf = (json: Json): Json => Object.assign({}, ...(json?.sections ?? []));

/** What is read of a module and its submodules, whose names have the namespaces in front. */
interface Parts {
  tables: Record<string, any>;
  reducers: object[];
  procedures: object[];
  privateTables: string[];
}

class SchemaReader {
  readonly #sections: Json;
  /** Of the sources, and of the database: empty, or namespaces with dots, the last one too. */
  readonly #prefix: string;
  readonly #sourcePrefix: string;
  readonly #types: Json[];
  /** Types of the typespace that were read; one that contains itself finds itself here. */
  readonly #known: AlgebraicType[] = [];
  readonly #names: Record<"Table" | "Function" | "Namespace", Map<string, string>> = {
    Table: new Map(),
    Function: new Map(),
    Namespace: new Map(),
  };

  constructor(sections: Json, prefix = "", sourcePrefix = "") {
    this.#sections = sections;
    this.#prefix = prefix;
    this.#sourcePrefix = sourcePrefix;
    this.#types = sections.Typespace.types;
    const { entries } = sections.ExplicitNames ?? { entries: [] };
    for (const entry of entries) {
      const [tag, { source_name, canonical_name }] = onlyEntry(entry);
      this.#names[tag as "Table"]?.set(source_name, canonical_name);
    }
  }

  read(): Parts {
    const { Tables = [], Views = [], Reducers = [], Procedures = [], Submodules = [] } = this.#sections;
    const key = (raw: Json) => this.#sourcePrefix + raw.source_name;
    const isPrivate = ({ table_access }: Json) => "Private" in table_access;
    const parts: Parts = {
      tables: Object.fromEntries([
        ...Tables.map((raw: Json) => [key(raw), this.#table(raw)]),
        ...Views.map((raw: Json) => [key(raw), this.#view(raw)]),
      ]),
      reducers: Reducers.map((raw: Json) => this.#function(raw)),
      procedures: Procedures.map((raw: Json) => ({
        ...this.#function(raw),
        returnType: this.#builder(raw.return_type),
      })),
      privateTables: Tables.filter(isPrivate).map((raw: Json) => this.#name("Table", raw.source_name)),
    };
    for (const { namespace, module } of Submodules) {
      const prefix = `${this.#name("Namespace", namespace)}.`;
      const below = new SchemaReader(sectionsOf(module), prefix, `${this.#sourcePrefix}${namespace}.`).read();
      Object.assign(parts.tables, below.tables);
      for (const list of ["reducers", "procedures", "privateTables"] as const)
        parts[list].push(...(below[list] as never[]));
    }
    return parts;
  }

  /** The name in the database. */
  #name(kind: "Table" | "Function" | "Namespace", sourceName: string): string {
    return this.#prefix + (this.#names[kind].get(sourceName) ?? sourceName);
  }

  #table(raw: Json): unknown {
    const elements: Json[] = this.#types[raw.product_type_ref].Product.elements;
    const names = elements.map((element) => toCamelCase(nameOf(element)));
    const unique = new Set<number>();
    for (const { data } of raw.constraints) {
      if (data.Unique.columns.length === 1) unique.add(data.Unique.columns[0]);
    }
    const row = this.#row(elements, (at) => ({
      ...(raw.primary_key.includes(at) ? { isPrimaryKey: true } : {}),
      ...(unique.has(at) ? { isUnique: true } : {}),
    }));
    const indexes = raw.indexes.flatMap(({ accessor_name, algorithm }: Json) => {
      const positions = [onlyEntry(algorithm)[1]].flat();
      const columns = positions.map((at) => names[at]!);
      // The index of a column is known by the name of the column, any other by its accessor.
      const accessors = columns.length === 1 ? [accessor_name.some, columns[0]] : [accessor_name.some];
      return accessors.map((accessor) => ({ accessor, algorithm: "btree", columns }));
    });
    return table({ name: this.#name("Table", raw.source_name), event: raw.is_event, indexes }, row);
  }

  #view(raw: Json): unknown {
    const { Array: element, Sum: option } = raw.return_type;
    const row: Json = element ?? option.variants[0].algebraic_type;
    const { elements } = (row.Ref === undefined ? row : this.#types[row.Ref]).Product;
    const takesArguments = raw.params.elements.length > 0;
    return table({ name: this.#name("Function", raw.source_name), takesArguments }, this.#row(elements));
  }

  #function({ source_name, params }: Json) {
    const row = this.#row(params.elements);
    return {
      accessorName: this.#sourcePrefix + source_name,
      name: this.#name("Function", source_name),
      params: row.row,
      paramsType: row.algebraicType.value,
    };
  }

  #row(elements: Json[], metadataOf: (at: number) => ColumnMetadata = () => ({})): RowBuilder<any> {
    const columns = elements.map((element, at) => {
      const name = nameOf(element);
      const metadata = { ...metadataOf(at), name };
      return [toCamelCase(name), new ColumnBuilder(this.#builder(element.algebraic_type), metadata)];
    });
    return new RowBuilder(Object.fromEntries(columns));
  }

  #builder(json: Json): TypeBuilder<any, any> {
    return new TypeBuilder(this.#type(json));
  }

  #type(json: Json): AlgebraicType {
    const [tag, value] = onlyEntry(json);
    if (tag === "Ref") return this.#ref(value);
    if (tag === "Array") return { tag, value: this.#type(value) };
    if (tag === "Product") return { tag, value: { elements: this.#members(value.elements, fieldName) } };
    if (tag !== "Sum") return { tag } as AlgebraicType;
    const sum = { variants: this.#members(value.variants, (name) => name) };
    if (sumShape(sum).kind === "sum") {
      for (const variant of sum.variants) variant.name = toPascalCase(variant.name);
    }
    return { tag, value: sum };
  }

  #ref(at: number): AlgebraicType {
    const known = this.#known[at];
    if (known) return known;
    const made = {} as AlgebraicType;
    this.#known[at] = made;
    return Object.assign(made, this.#type(this.#types[at]));
  }

  #members(members: Json[], clientName: (name: string) => string) {
    return members.map((member) => ({
      name: clientName(nameOf(member)),
      algebraicType: this.#type(member.algebraic_type),
    }));
  }
}

/** The names of special types, such as `__identity__`, are not the module's. */
const fieldName = (name: string): string => (name.startsWith("__") ? name : toCamelCase(name));

const nameOf = ({ name }: Json): string => name.some;

const onlyEntry = (json: Json): [tag: string, value: Json] => Object.entries(json)[0] as [string, Json];
