// What a database consists of, as its schema and the route of its state say.

import * as api from "./api";
import { isObject, type Json } from "./json";
import { type Field, fieldsOf, nameOf, option, optionOf, type Type, Types } from "./types";

export interface Column extends Field {
  isUnique: boolean;
  isPrimaryKey: boolean;
  isCounted: boolean;
}

export interface Index {
  name: string;
  columns: string[];
  algorithm: string;
}

export interface Table {
  name: string;
  isView: boolean;
  isPublic: boolean;
  isEvent: boolean;
  columns: Column[];
  primaryKey: number | undefined;
  indexes: Index[];
  schedule: { function: string; column: number } | undefined;
}

export type FunctionKind = "reducer" | "procedure" | "view" | "handler";

export interface Func {
  kind: FunctionKind;
  name: string;
  params: Field[];
  returns: Type | undefined;
  /** Whether clients may call it; the scheduler and the host call the others. */
  isCallable: boolean;
  lifecycle: string | undefined;
  routes: { method: string; path: string }[];
}

export interface Schema {
  tables: Table[];
  functions: Func[];
  types: { name: string; text: string }[];
  rules: string[];
}

const list = (json: Json | undefined): Json[] => (Array.isArray(json) ? json : []);
const field = (json: Json | undefined, name: string): Json | undefined =>
  isObject(json) ? json[name] : undefined;
const textOf = (json: Json | undefined): string => (typeof json === "string" ? json : "");
const numbers = (json: Json | undefined): number[] => list(json).map(Number);
/** The name of the only entry of a sum in JSON. */
const tag = (json: Json | undefined): string => (isObject(json) ? (Object.keys(json)[0] ?? "") : "");

export async function loadSchema(database: string, token: string): Promise<Schema> {
  const path = (version: number) => `database/${api.part(database)}/schema?version=${version}`;
  const [nine, ten] = await Promise.all([
    api.json(path(9), { token }),
    api.json(path(10), { token }).catch(() => null),
  ]);
  const types = new Types(field(nine, "typespace") ?? null);
  const sections = new Sections(ten);
  const tables = list(field(nine, "tables")).map((table) => tableOf(table, types, sections));
  const exports = list(field(nine, "misc_exports"));
  const views = exports.flatMap((one) => list([field(one, "View") ?? null])).filter(isObject);
  const procedures = exports.flatMap((one) => list([field(one, "Procedure") ?? null])).filter(isObject);
  return {
    tables: [...tables, ...views.map((view) => viewOf(view, types))].sort(byName),
    functions: [
      ...list(field(nine, "reducers")).map((one) => functionOf("reducer", one, types, sections)),
      ...procedures.map((one) => functionOf("procedure", one, types, sections)),
      ...views.map((one) => functionOf("view", one, types, sections)),
      ...sections.handlers(),
    ],
    types: list(field(nine, "types")).map((one) => {
      const name = field(one, "name");
      const scope = list(field(name, "scope")).map(textOf);
      const type = types.of({ Ref: field(one, "ty") ?? 0 });
      return { name: [...scope, textOf(field(name, "name"))].join("."), text: nameOf(type) };
    }),
    rules: list(field(nine, "row_level_security")).map((rule) => textOf(field(rule, "sql"))),
  };
}

const byName = (a: { name: string }, b: { name: string }): number => a.name.localeCompare(b.name);

/** What only version 10 of a definition says. Its names are those in the code. */
class Sections {
  readonly #sections = new Map<string, Json[]>();
  readonly #canonical = new Map<string, string>();

  constructor(ten: Json) {
    for (const section of list(field(ten, "sections"))) {
      const name = tag(section);
      this.#sections.set(name, list(field(section, name)));
      if (name === "ExplicitNames") this.#names(field(field(section, name), "entries"));
    }
  }

  #names(entries: Json | undefined): void {
    for (const entry of list(entries)) {
      const mapping = field(entry, tag(entry));
      const key = `${tag(entry)} ${textOf(field(mapping, "source_name"))}`;
      this.#canonical.set(key, textOf(field(mapping, "canonical_name")));
    }
  }

  #of(kind: string, json: Json): string {
    const source = textOf(field(json, "source_name"));
    return this.#canonical.get(`${kind} ${source}`) ?? source;
  }

  isEvent(table: string): boolean {
    const found = this.#find("Tables", "Table", table);
    return field(found, "is_event") === true;
  }

  isPrivate(name: string): boolean {
    const found = this.#find("Reducers", "Function", name) ?? this.#find("Procedures", "Function", name);
    return tag(field(found, "visibility")) === "Private";
  }

  /** By the canonical name, or by the same words in another case. */
  #find(section: string, kind: string, name: string): Json | undefined {
    const plain = (text: string) => text.replaceAll("_", "").toLowerCase();
    const all = this.#sections.get(section) ?? [];
    return (
      all.find((one) => this.#of(kind, one) === name) ??
      all.find((one) => plain(this.#of(kind, one)) === plain(name))
    );
  }

  handlers(): Func[] {
    const routes = (this.#sections.get("HttpRoutes") ?? []).map((route) => {
      const method = field(route, "method");
      const one = field(method, "Method");
      const name = tag(one) === "Extension" ? textOf(field(one, "Extension")) : tag(one).toUpperCase();
      return {
        handler: textOf(field(route, "handler_function")),
        method: name || "ANY",
        path: textOf(field(route, "path")),
      };
    });
    return (this.#sections.get("HttpHandlers") ?? []).map((handler) => ({
      kind: "handler" as const,
      name: this.#of("Function", handler),
      params: [],
      returns: undefined,
      isCallable: true,
      lifecycle: undefined,
      routes: routes.filter((route) => route.handler === textOf(field(handler, "source_name"))),
    }));
  }
}

function tableOf(json: Json, types: Types, sections: Sections): Table {
  const name = textOf(field(json, "name"));
  const fields = fieldsOf(types.of({ Ref: field(json, "product_type_ref") ?? 0 }));
  const primaryKey = numbers(field(json, "primary_key"))[0];
  const unique = new Set(
    list(field(json, "constraints"))
      .map((one) => numbers(field(field(field(one, "data"), "Unique"), "columns")))
      .flatMap((columns) => (columns.length === 1 ? columns : [])),
  );
  const counted = new Set(list(field(json, "sequences")).map((one) => Number(field(one, "column"))));
  const columns = fields.map((one, at) => ({
    ...one,
    isUnique: unique.has(at) || at === primaryKey,
    isPrimaryKey: at === primaryKey,
    isCounted: counted.has(at),
  }));
  const schedule = field(field(json, "schedule"), "some");
  return {
    name,
    isView: false,
    isPublic: tag(field(json, "table_access")) === "Public",
    isEvent: sections.isEvent(name),
    columns,
    primaryKey,
    indexes: list(field(json, "indexes")).map((index) => indexOf(index, columns)),
    schedule: isObject(schedule)
      ? { function: textOf(schedule["reducer_name"]), column: Number(schedule["scheduled_at_column"]) }
      : undefined,
  };
}

function indexOf(json: Json, columns: Column[]): Index {
  const algorithm = field(json, "algorithm");
  const name = tag(algorithm);
  const positions = field(algorithm, name);
  const all = Array.isArray(positions) ? numbers(positions) : [Number(positions)];
  return {
    name: option(field(json, "name")) ?? option(field(json, "accessor_name")) ?? "",
    columns: all.map((at) => columns[at]?.name ?? "?"),
    algorithm: name.toLowerCase(),
  };
}

/** The rows of a view: what it returns, without the list, option or query around it. */
function viewOf(json: Json, types: Types): Table {
  const returned = types.of(field(json, "return_type"));
  const first = fieldsOf(returned)[0];
  const row =
    optionOf(returned) ??
    (returned.tag === "Array" ? returned.value : first?.name === "__query__" ? first.type : returned);
  return {
    name: textOf(field(json, "name")),
    isView: true,
    isPublic: field(json, "is_public") === true,
    isEvent: false,
    columns: fieldsOf(row).map((one) => ({ ...one, isUnique: false, isPrimaryKey: false, isCounted: false })),
    primaryKey: undefined,
    indexes: [],
    schedule: undefined,
  };
}

function functionOf(kind: FunctionKind, json: Json, types: Types, sections: Sections): Func {
  const name = textOf(field(json, "name"));
  const lifecycle = tag(field(field(json, "lifecycle"), "some")) || undefined;
  return {
    kind,
    name,
    params: fieldsOf(types.of({ Product: field(json, "params") ?? {} })),
    returns: kind === "reducer" ? undefined : types.of(field(json, "return_type")),
    isCallable: kind !== "view" && !lifecycle && !sections.isPrivate(name),
    lifecycle,
    routes: [],
  };
}
