import { numberType } from "./primitives";
import { isUnit, productShape, sumShape } from "./shapes";
import { SPECIAL_NAMES } from "./special";
import type { AlgebraicTypeType } from "./type_tree";
import type { AnyRow } from "./untyped";

// Checks of values before they are written as their type, and the errors of those that fail.

interface Check {
  readonly fits: (value: any) => boolean;
  readonly expected: string;
}

function integer(isSigned: boolean, bits: number): Check {
  const min = isSigned ? -(2 ** (bits - 1)) : 0;
  const max = min + 2 ** bits - 1;
  return {
    fits: (value) => Number.isInteger(value) && value >= min && value <= max,
    expected: `an integer from ${min} to ${max}`,
  };
}

function bigInteger(isSigned: boolean, bits: number): Check {
  const cut = isSigned ? BigInt.asIntN : BigInt.asUintN;
  return {
    fits: (value) => typeof value === "bigint" && cut(bits, value) === value,
    expected: isSigned ? `a bigint of ${bits} bits` : `a bigint from 0 to 2n**${bits}n-1n`,
  };
}

function ofType(type: "string" | "boolean" | "number", expected: string): Check {
  return { fits: (value) => typeof value === type, expected };
}

const BYTE = /* @__PURE__ */ integer(false, 8);

/** For the types whose values are not made of other values. */
function checkOfPrimitive(tag: string): Check {
  const bits = 8 * (numberType(tag)?.bytes ?? 0);
  if (tag === "String") return ofType("string", "a string");
  if (tag === "Bool") return ofType("boolean", "true or false");
  if (tag.startsWith("F")) return ofType("number", "a number");
  return (bits > 32 ? bigInteger : integer)(tag.startsWith("I"), bits);
}

/** Thrown by an encoder that checks: a value is not what its type wants. On its way out it learns where the value is. */
export class Misfit {
  path = "";

  constructor(
    readonly expected: string,
    readonly value: unknown,
  ) {}

  /** It was thrown for this part of a value. */
  within(part: string): this {
    this.path = part + this.path;
    return this;
  }

  get message(): string {
    const place = this.path === "" ? "the arguments" : `argument ${this.path.replace(/^\./, "")}`;
    return `${place}: expected ${this.expected}, got ${describe(this.value)}`;
  }
}

/** Bytes: a typed array, or, as the published package takes it, an array of numbers. */
function isBytes(value: unknown): boolean {
  if (value instanceof Uint8Array || value instanceof Uint8ClampedArray) return true;
  // An array of another window is no instance of ours.
  if (ArrayBuffer.isView(value))
    return (value as Uint8Array).BYTES_PER_ELEMENT === 1 && !(value instanceof DataView);
  return Array.isArray(value) && value.every(BYTE.fits);
}

/** Anything with elements: an array, or a typed array. */
function isList(value: unknown): boolean {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

function isObject(value: unknown): value is AnyRow {
  return typeof value === "object" && value !== null;
}

/** The check of a value without its parts; none if any value will do. */
export function checkOf(type: AlgebraicTypeType): Check | undefined {
  switch (type.tag) {
    case "Array":
      return type.value.tag === "U8"
        ? { fits: isBytes, expected: "bytes (Uint8Array)" }
        : { fits: isList, expected: "an array" };
    case "Product": {
      const shape = productShape(type.value);
      if (shape.kind !== "special")
        return isUnit(type) ? undefined : { fits: isObject, expected: "an object" };
      const { field } = shape;
      const { fits } = checkOfPrimitive(shape.type.tag);
      return { fits: (value) => isObject(value) && fits(value[field]), expected: SPECIAL_NAMES.get(field)! };
    }
    case "Sum": {
      const { kind } = sumShape(type.value);
      if (kind === "option") return undefined;
      if (kind !== "result") return { fits: isObject, expected: "{ tag, value }" };
      return {
        fits: (value) => isObject(value) && ("ok" in value || "err" in value),
        expected: "{ ok } or { err }",
      };
    }
    default:
      return type.tag === "Ref" ? undefined : checkOfPrimitive(type.tag);
  }
}

/** A value is shown up to this length. */
const SHOWN_CHARACTERS_MAX = 60;

/** A value and its type, for an error message. */
function describe(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  if (typeof value === "object" || typeof value === "function") {
    if (Array.isArray(value)) return `an array of ${value.length}`;
    const name = value.constructor?.name;
    return name === undefined || name === "Object" ? "an object" : `an object of class ${name}`;
  }
  const text =
    typeof value === "string"
      ? JSON.stringify(value)
      : `${String(value)}${typeof value === "bigint" ? "n" : ""}`;
  return `${typeof value} ${text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text}`;
}
