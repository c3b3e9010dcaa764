// Values in the JSON of the server, to and from those of the SDK.

import { SPECIAL_CLASSES } from "../core/special";

/** A type as the server's answers have it: `{"U32":[]}`, `{"Array":{…}}`, `{"Product":{"elements":[…]}}`. */
type JsonType = { [name: string]: any };
type Part = { name: { some: string } | { none: [] }; algebraic_type: JsonType };

/** The columns of an answer. */
export interface JsonProduct {
  elements: Part[];
}

const BIG_INTEGERS = new Set(["I64", "U64", "I128", "U128", "I256", "U256"]);
const FLOATS: Record<string, number> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
};

/** Parses JSON; integers that a number cannot hold are texts in it. */
export function parseJson(text: string): unknown {
  // A string is skipped as a whole, so that digits inside of one stay as they are.
  return JSON.parse(
    text.replace(/"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g, (part) =>
      part.startsWith('"') ? part : `"${part}"`,
    ),
  );
}

const nameOf = ({ name }: Part): string | undefined => ("some" in name ? name.some : undefined);

/** A row, which is an array of its columns, as an object. */
export function rowOf({ elements }: JsonProduct, columns: any[]): Record<string, unknown> {
  const named = elements.map((part, i) => [
    nameOf(part) ?? String(i),
    valueOf(part.algebraic_type, columns[i]),
  ]);
  return Object.fromEntries(named);
}

function valueOf(type: JsonType, value: any): unknown {
  const kind = Object.keys(type)[0]!;
  if (BIG_INTEGERS.has(kind)) return bigintOf(value);
  if (kind === "F32" || kind === "F64") return FLOATS[value] ?? Number(value);
  if (kind === "Array") return arrayOf(type["Array"], value);
  if (kind === "Product") return productOf(type["Product"], value);
  if (kind === "Sum") return sumOf(type["Sum"].variants, value);
  return value;
}

/** As a number, or in hexadecimal digits with a sign. */
function bigintOf(value: number | string): bigint {
  return typeof value === "string" && value.startsWith("-0x") ? -BigInt(value.slice(1)) : BigInt(value);
}

function arrayOf(element: JsonType, value: any): unknown {
  if ("U8" in element && typeof value === "string") return Uint8Array.from(Buffer.from(value, "hex"));
  return (value as any[]).map((one) => valueOf(element, one));
}

function productOf(type: JsonProduct, value: any[]): unknown {
  const Special = SPECIAL_CLASSES[(type.elements.length === 1 && nameOf(type.elements[0]!)) || ""];
  return Special ? new Special(bigintOf(value[0])) : rowOf(type, value);
}

function sumOf(variants: Part[], [index, inner]: [number, any]): unknown {
  const variant = variants[index]!;
  const tag = nameOf(variant) ?? String(index);
  const value = valueOf(variant.algebraic_type, inner);
  const names = variants.map(nameOf).join();
  if (names === "some,none") return tag === "some" ? value : undefined;
  if (names === "ok,err") return { [tag]: value };
  const isUnit = variant.algebraic_type["Product"]?.elements.length === 0;
  return isUnit ? { tag } : { tag, value };
}

/** JSON of an argument: big integers are numbers, identities texts, nothing is null. */
export function toJson(value: any): string {
  if (value === undefined || value === null) return "null";
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object") return JSON.stringify(value);
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString("hex"));
  if (Array.isArray(value)) return `[${value.map(toJson).join()}]`;
  if (typeof value.__identity__ === "bigint")
    return `{"__identity__":"0x${value.__identity__.toString(16)}"}`;
  if (typeof value.tag === "string") return `{${JSON.stringify(value.tag)}:${toJson(value.value ?? [])}}`;
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${toJson(member)}`);
  return `{${members.join()}}`;
}
