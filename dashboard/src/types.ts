// Types of columns and parameters, and how their values look. Values are those of the TypeScript package.

import type { AlgebraicType } from "../../sdk-ts/src/core";
import { makeSpecial, SPECIAL_CLASSES } from "../../sdk-ts/src/core/special";
import { isObject, type Json } from "./json";

export type Type = AlgebraicType;
export type Field = { name: string; type: Type };

/** Types and values that are nested deeper are cut. */
const DEPTH_MAX = 12;

// From JSON ---------------------------------------------------------------------------------------------------------

/** The types of a module. One that contains itself is an object that contains itself. */
export class Types {
  readonly #json: Json[];
  readonly #made = new Map<number, Type>();

  constructor(typespace: Json) {
    const types = isObject(typespace) ? typespace["types"] : undefined;
    this.#json = Array.isArray(types) ? types : [];
  }

  of(json: Json | undefined): Type {
    if (!isObject(json)) return { tag: "Product", value: { elements: [] } };
    const [tag, inner] = Object.entries(json)[0] ?? ["Product", {}];
    switch (tag) {
      case "Ref":
        return this.#ref(Number(inner));
      case "Array":
        return { tag, value: this.of(inner) };
      case "Product":
        return { tag, value: { elements: this.#fields(inner, "elements") } };
      case "Sum":
        return { tag, value: { variants: this.#fields(inner, "variants") } };
      default:
        return { tag } as Type;
    }
  }

  #ref(at: number): Type {
    const known = this.#made.get(at);
    if (known) return known;
    const type = {} as Type;
    this.#made.set(at, type);
    return Object.assign(type, this.of(this.#json[at]));
  }

  #fields(json: Json | undefined, key: string): { name: string | undefined; algebraicType: Type }[] {
    const list = isObject(json) ? json[key] : undefined;
    return (Array.isArray(list) ? list : []).map((field) => ({
      name: isObject(field) ? option(field["name"]) : undefined,
      algebraicType: this.of(isObject(field) ? field["algebraic_type"] : undefined),
    }));
  }
}

/** `{"some": text}` as the text. */
export function option(json: Json | undefined): string | undefined {
  const some = isObject(json) ? json["some"] : undefined;
  return typeof some === "string" ? some : undefined;
}

export function fieldsOf(type: Type): Field[] {
  if (type.tag !== "Product") return [];
  return type.value.elements.map(({ name, algebraicType }, at) => ({
    name: name ?? String(at),
    type: algebraicType,
  }));
}

// Kinds -------------------------------------------------------------------------------------------------------------

const INTEGER = /^[IU](8|16|32|64|128|256)$/;

/** The name of the only field of a special product. */
function specialOf(type: Type): string | undefined {
  if (type.tag !== "Product" || type.value.elements.length !== 1) return undefined;
  const name = type.value.elements[0]!.name;
  return name !== undefined && Object.hasOwn(SPECIAL_CLASSES, name) ? name : undefined;
}

const SPECIAL_KINDS: Record<string, string> = {
  __identity__: "identity",
  __connection_id__: "connection id",
  __timestamp_micros_since_unix_epoch__: "timestamp",
  __time_duration_micros__: "duration",
  __uuid__: "uuid",
};

const SPECIAL_NAMES: Record<string, string> = {
  __identity__: "Identity",
  __connection_id__: "ConnectionId",
  __timestamp_micros_since_unix_epoch__: "Timestamp",
  __time_duration_micros__: "TimeDuration",
  __uuid__: "Uuid",
};

export function optionOf(type: Type): Type | undefined {
  if (type.tag !== "Sum") return undefined;
  const [some, none, more] = type.value.variants;
  return some?.name === "some" && none?.name === "none" && !more ? some.algebraicType : undefined;
}

const isBytes = (type: Type): boolean => type.tag === "Array" && type.value.tag === "U8";
const isUnit = (type: Type): boolean => type.tag === "Product" && type.value.elements.length === 0;

/** How a value is entered and laid out. */
export type Kind =
  | "bool"
  | "integer"
  | "float"
  | "string"
  | "bytes"
  | "identity"
  | "connection id"
  | "timestamp"
  | "duration"
  | "uuid"
  | "option"
  | "choice"
  | "other";

export function kindOf(type: Type): Kind {
  if (type.tag === "Bool") return "bool";
  if (INTEGER.test(type.tag)) return "integer";
  if (type.tag === "F32" || type.tag === "F64") return "float";
  if (type.tag === "String") return "string";
  if (isBytes(type)) return "bytes";
  const special = specialOf(type);
  if (special) return SPECIAL_KINDS[special] as Kind;
  if (optionOf(type)) return "option";
  if (type.tag === "Sum" && type.value.variants.every(({ algebraicType }) => isUnit(algebraicType)))
    return "choice";
  return "other";
}

export const isNumeric = (type: Type): boolean => ["integer", "float"].includes(kindOf(type));

/** Parts of a type that its name names: a module may nest types so that they are without end. */
const NAMED_PARTS_MAX = 80;

/** The name of a type, for people. */
export function nameOf(type: Type): string {
  return namedBy(type, { left: NAMED_PARTS_MAX });
}

function namedBy(type: Type, parts: { left: number }): string {
  if (--parts.left < 0) return "…";
  const some = optionOf(type);
  if (some) return `Option<${namedBy(some, parts)}>`;
  const special = specialOf(type);
  if (special) return SPECIAL_NAMES[special]!;
  if (isBytes(type)) return "bytes";
  if (isUnit(type)) return "()";
  if (type.tag === "Array") return `${namedBy(type.value, parts)}[]`;
  if (type.tag === "Product") {
    const fields = listed(type.value.elements, parts, ({ name, algebraicType }, at) => {
      return `${name ?? at}: ${namedBy(algebraicType, parts)}`;
    });
    return `{ ${fields.join(", ")} }`;
  }
  if (type.tag === "Sum") {
    const variants = listed(type.value.variants, parts, ({ name, algebraicType }, at) => {
      return `${name ?? at}${isUnit(algebraicType) ? "" : `(${namedBy(algebraicType, parts)})`}`;
    });
    return variants.join(" | ") || "never";
  }
  return type.tag === "Ref" ? "…" : type.tag;
}

/** The texts of a list's items, as far as the parts go. */
function listed<T>(
  items: readonly T[],
  parts: { left: number },
  text: (item: T, at: number) => string,
): string[] {
  const texts: string[] = [];
  for (const [at, item] of items.entries()) {
    if (parts.left-- <= 0) return [...texts, "…"];
    texts.push(text(item, at));
  }
  return texts;
}

// Values ------------------------------------------------------------------------------------------------------------

/** A value in the untyped form of SQL results as what the package would have decoded. */
export function fromUntyped(json: Json, type: Type): unknown {
  const special = specialOf(type);
  if (special) {
    const inner = Array.isArray(json) ? json[0] : json;
    return makeSpecial(special, wholeNumber(inner));
  }
  if (type.tag === "U256" || type.tag === "I256") return wholeNumber(json);
  if (type.tag === "F32" || type.tag === "F64") return json === null ? Number.NaN : Number(json);
  if (isBytes(type)) return typeof json === "string" ? bytesOf(json) : new Uint8Array();
  const list = Array.isArray(json) ? json : [];
  if (type.tag === "Array") return list.map((item) => fromUntyped(item, type.value));
  if (type.tag === "Product") {
    const fields: [string, unknown][] = fieldsOf(type).map((field, at) => [
      field.name,
      fromUntyped(list[at] ?? null, field.type),
    ]);
    return Object.assign(Object.create(null), Object.fromEntries(fields));
  }
  if (type.tag === "Sum") {
    const variant = type.value.variants[Number(list[0])];
    if (!variant) return undefined;
    const value = fromUntyped(list[1] ?? null, variant.algebraicType);
    if (optionOf(type)) return Number(list[0]) === 0 ? value : undefined;
    return { tag: variant.name ?? String(list[0]), value };
  }
  return json;
}

function wholeNumber(json: Json | undefined): bigint {
  if (typeof json === "bigint") return json;
  if (typeof json === "number") return BigInt(Math.trunc(json));
  const found = typeof json === "string" ? /^(-?)(0x[0-9a-f]+|\d+)$/i.exec(json) : null;
  if (!found) return 0n;
  return found[1] ? -BigInt(found[2]!) : BigInt(found[2]!);
}

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

const hex = (value: bigint, digits: number): string => value.toString(16).padStart(digits, "0");
const hexOfBytes = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The number in a value of a special product. */
function inner(value: unknown): bigint {
  const first: unknown = isObject(value) ? Object.values(value)[0] : value;
  return typeof first === "bigint" ? first : 0n;
}

export function timeText(micros: bigint): string {
  const date = new Date(Number(micros / 1000n));
  if (Number.isNaN(date.getTime())) return `${micros} µs`;
  const fraction = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  return `${date.toISOString().slice(0, 19)}.${String(fraction).padStart(6, "0")}Z`;
}

export function durationText(micros: bigint): string {
  const seconds = Number(micros) / 1e6;
  const size = Math.abs(seconds);
  if (size < 0.001) return `${micros} µs`;
  if (size < 1) return `${+(seconds * 1000).toFixed(3)} ms`;
  if (size < 120) return `${+seconds.toFixed(3)} s`;
  if (size < 7200) return `${+(seconds / 60).toFixed(1)} min`;
  return `${+(seconds / 3600).toFixed(1)} h`;
}

export function uuidText(value: bigint): string {
  return hex(value, 32).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** A value as text, in full up to the nesting that is shown. */
export function format(value: unknown, type: Type, depth = 0): string {
  if (depth > DEPTH_MAX) return "…";
  switch (kindOf(type)) {
    case "identity":
      return `0x${hex(inner(value), 64)}`;
    case "connection id":
      return `0x${hex(inner(value), 32)}`;
    case "timestamp":
      return timeText(inner(value));
    case "duration":
      return durationText(inner(value));
    case "uuid":
      return uuidText(inner(value));
    case "bytes":
      return value instanceof Uint8Array ? `0x${hexOfBytes(value)}` : "";
    case "string":
      return depth === 0 ? String(value) : JSON.stringify(value);
    case "option":
      return value === undefined || value === null ? "none" : format(value, optionOf(type)!, depth);
    default:
      return formatOther(value, type, depth);
  }
}

function formatOther(value: unknown, type: Type, depth: number): string {
  if (type.tag === "Array") {
    const items = Array.isArray(value) ? value : ArrayBuffer.isView(value) ? Array.from(value as never) : [];
    return `[${items.map((item) => format(item, type.value, depth + 1)).join(", ")}]`;
  }
  if (type.tag === "Product") {
    const fields = fieldsOf(type).map((field) => {
      const found = isObject(value) ? (value as Record<string, unknown>)[field.name] : undefined;
      return `${field.name}: ${format(found, field.type, depth + 1)}`;
    });
    return fields.length === 0 ? "()" : `{ ${fields.join(", ")} }`;
  }
  if (type.tag === "Sum") return formatSum(value, type.value.variants, depth);
  return String(value);
}

function formatSum(
  value: unknown,
  variants: readonly { name: string | undefined; algebraicType: Type }[],
  depth: number,
): string {
  const sum = isObject(value) ? (value as Record<string, unknown>) : {};
  // A result is `{ok}` or `{err}`, everything else has a tag.
  const tag = typeof sum["tag"] === "string" ? sum["tag"] : (Object.keys(sum)[0] ?? String(value));
  const variant = variants.find(({ name }) => name === tag);
  if (!variant || isUnit(variant.algebraicType)) return tag;
  return `${tag}(${format("value" in sum ? sum["value"] : sum[tag], variant.algebraicType, depth + 1)})`;
}

/** Bytes, items and characters of a value that a cell shows. */
const CELL_PARTS_MAX = 240;

/** What stands in a cell: the beginning of a long value, without a look at the rest. */
export function cellText(value: unknown, type: Type): string {
  const kind = kindOf(type);
  if (kind === "identity") {
    const full = format(value, type);
    return `${full.slice(0, 8)}…${full.slice(-4)}`;
  }
  const isLong =
    (typeof value === "string" || Array.isArray(value) || value instanceof Uint8Array) &&
    value.length > CELL_PARTS_MAX;
  const text = format(isLong ? value.slice(0, CELL_PARTS_MAX) : value, type);
  return isLong || text.length > CELL_PARTS_MAX ? `${text.slice(0, CELL_PARTS_MAX)}…` : text;
}

/** A value for the JSON view: identities and times as text, bytes as hex. */
export function plain(value: unknown, type: Type, depth = 0): Json {
  if (depth > DEPTH_MAX) return "…";
  const kind = kindOf(type);
  if (kind === "bool" || kind === "integer" || kind === "float" || kind === "string") return value as Json;
  if (kind === "option") return value === undefined ? null : plain(value, optionOf(type)!, depth + 1);
  if (type.tag === "Array" && Array.isArray(value))
    return value.map((item) => plain(item, type.value, depth + 1));
  if (type.tag === "Product" && kind === "other") {
    const made: { [key: string]: Json } = Object.create(null);
    for (const field of fieldsOf(type)) {
      made[field.name] = plain(
        isObject(value) ? (value as Record<string, unknown>)[field.name] : null,
        field.type,
        depth + 1,
      );
    }
    return made;
  }
  return format(value, type);
}

/** Orders values of a column as the database does, near enough for rows that are on the screen. */
export function compare(a: unknown, b: unknown, type: Type): number {
  const some = optionOf(type);
  if (some) {
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
    return compare(a, b, some);
  }
  if (["identity", "connection id", "timestamp", "duration", "uuid"].includes(kindOf(type))) {
    return order(inner(a), inner(b));
  }
  if (typeof a === "string" || typeof a === "number" || typeof a === "bigint" || typeof a === "boolean") {
    return order(a, b as typeof a);
  }
  return order(format(a, type), format(b, type));
}

const order = <T extends string | number | bigint | boolean>(a: T, b: T): number =>
  a < b ? -1 : a > b ? 1 : 0;

// Literals ----------------------------------------------------------------------------------------------------------

/** A name in SQL. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;

/** Whether SQL has a literal for values of this type. */
export const hasLiteral = (type: Type): boolean =>
  !["duration", "option", "choice", "other"].includes(kindOf(type));

/** What was typed as a literal of SQL; throws with a reason. */
export function literal(typed: string, type: Type): string {
  const trimmed = typed.trim();
  switch (kindOf(type)) {
    case "bool":
      if (/^(true|false)$/i.test(trimmed)) return trimmed.toUpperCase();
      throw new Error("true or false");
    case "integer":
      if (/^[+-]?\d+$/.test(trimmed)) return trimmed;
      throw new Error("a whole number");
    case "float":
      if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed)) return trimmed;
      throw new Error("a number");
    case "string":
      return text(typed);
    case "bytes":
      if (/^(0x)?([0-9a-f]{2})*$/i.test(trimmed)) return text(trimmed.replace(/^0x/i, ""));
      throw new Error("pairs of hex digits");
    case "identity":
      if (/^(0x)?[0-9a-f]{64}$/i.test(trimmed)) return `0x${trimmed.replace(/^0x/i, "")}`;
      throw new Error("64 hex digits");
    case "connection id":
      if (/^(0x)?[0-9a-f]{32}$/i.test(trimmed)) return `0x${trimmed.replace(/^0x/i, "")}`;
      throw new Error("32 hex digits");
    case "timestamp":
    case "uuid":
      return text(trimmed);
    default:
      throw new Error("SQL has no literal for this type; call a reducer instead");
  }
}

/** A value as it is typed to mean itself. */
export const typed = (value: unknown, type: Type): string => format(value, type);
