import type { AlgebraicTypeType, TypespaceType } from "./algebraic_type";
import { productShape, resolve, sumShape } from "./codec";
import { badValue } from "./errors";

// What a value must be to be written as its type. Encoders that check test each number and text as they write it, which
// costs a comparison; what is wrong, and where, is found out afterwards, for the one value that does not fit.

interface Check {
  /** Source of an expression that is true for what does not fit; `v` is the value's name. */
  readonly misfits: (v: string) => string;
  readonly fits: (value: any) => boolean;
  readonly expected: string;
}

/** A number that the bit operation leaves alone is an integer in its range. */
function smallInteger(
  operation: (v: string) => string,
  apply: (value: number) => number,
  range: string,
): Check {
  return {
    misfits: (v) => `typeof ${v}!=="number"||${operation(v)}!==${v}`,
    fits: (value) => typeof value === "number" && apply(value) === value,
    expected: `an integer ${range}`,
  };
}

function bigInteger(isSigned: boolean, bits: number): Check {
  const cut = isSigned ? BigInt.asIntN : BigInt.asUintN;
  return {
    misfits: (v) => `typeof ${v}!=="bigint"||BigInt.as${isSigned ? "I" : "Ui"}ntN(${bits},${v})!==${v}`,
    fits: (value) => typeof value === "bigint" && cut(bits, value) === value,
    expected: isSigned ? `a bigint of ${bits} bits` : `a bigint from 0 to 2n**${bits}n-1n`,
  };
}

function ofType(type: "string" | "boolean" | "number", expected: string): Check {
  return { misfits: (v) => `typeof ${v}!=="${type}"`, fits: (value) => typeof value === type, expected };
}

/** For the types whose values are not made of other values. */
export const CHECKS: Readonly<Record<string, Check>> = {
  I8: smallInteger(
    (v) => `(${v}<<24>>24)`,
    (n) => (n << 24) >> 24,
    "from -128 to 127",
  ),
  U8: smallInteger(
    (v) => `(${v}&255)`,
    (n) => n & 255,
    "from 0 to 255",
  ),
  I16: smallInteger(
    (v) => `(${v}<<16>>16)`,
    (n) => (n << 16) >> 16,
    "from -32768 to 32767",
  ),
  U16: smallInteger(
    (v) => `(${v}&65535)`,
    (n) => n & 65535,
    "from 0 to 65535",
  ),
  I32: smallInteger(
    (v) => `(${v}|0)`,
    (n) => n | 0,
    "from -2147483648 to 2147483647",
  ),
  U32: smallInteger(
    (v) => `(${v}>>>0)`,
    (n) => n >>> 0,
    "from 0 to 4294967295",
  ),
  I64: /* @__PURE__ */ bigInteger(true, 64),
  U64: /* @__PURE__ */ bigInteger(false, 64),
  I128: /* @__PURE__ */ bigInteger(true, 128),
  U128: /* @__PURE__ */ bigInteger(false, 128),
  I256: /* @__PURE__ */ bigInteger(true, 256),
  U256: /* @__PURE__ */ bigInteger(false, 256),
  F32: /* @__PURE__ */ ofType("number", "a number"),
  F64: /* @__PURE__ */ ofType("number", "a number"),
  Bool: /* @__PURE__ */ ofType("boolean", "true or false"),
  String: /* @__PURE__ */ ofType("string", "a string"),
};

/** Thrown by an encoder that checks; `explainMisfit` says what it is about. */
export function misfit(): never {
  throw badValue("a value does not fit its type");
}

/** Bytes: a typed array, or, as the published package takes it, an array of numbers. */
export function isBytes(value: unknown): boolean {
  if (value instanceof Uint8Array || value instanceof Uint8ClampedArray) return true;
  // An array of another window is no instance of ours.
  if (ArrayBuffer.isView(value))
    return (value as Uint8Array).BYTES_PER_ELEMENT === 1 && !(value instanceof DataView);
  return Array.isArray(value) && value.every(CHECKS.U8!.fits);
}

/** Anything with elements: an array, or a typed array. */
export function isList(value: unknown): boolean {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

export function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** Where arguments do not fit their type and why, as text; undefined if they fit. `path` leads to `value`. */
export function findMisfit(
  type: AlgebraicTypeType,
  value: any,
  path: string,
  typespace?: TypespaceType,
): string | undefined {
  const place = path === "" ? "the arguments" : `argument ${path}`;
  const wrong = (expected: string): string => `${place}: expected ${expected}, got ${describe(value)}`;
  switch (type.tag) {
    case "Ref":
      return findMisfit(resolve(type.value, typespace), value, path, typespace);
    case "Array": {
      if (type.value.tag === "U8") return isBytes(value) ? undefined : wrong("bytes (Uint8Array)");
      if (!isList(value)) return wrong("an array");
      for (let i = 0; i < value.length; i++) {
        const found = findMisfit(type.value, value[i], `${path}[${i}]`, typespace);
        if (found) return found;
      }
      return undefined;
    }
    case "Product": {
      const shape = productShape(type.value);
      if (shape.kind === "special") {
        const isFit = isObject(value) && CHECKS[shape.type.tag]?.fits(value[shape.field]);
        return isFit ? undefined : wrong(SPECIAL_NAMES[shape.field]!);
      }
      if (type.value.elements.length === 0) return undefined;
      if (!isObject(value)) return wrong("an object");
      for (const { name, algebraicType } of type.value.elements) {
        const found = findMisfit(
          algebraicType,
          value[name!],
          path === "" ? name! : `${path}.${name}`,
          typespace,
        );
        if (found) return found;
      }
      return undefined;
    }
    case "Sum": {
      const shape = sumShape(type.value);
      if (shape.kind === "option") {
        return value === undefined || value === null
          ? undefined
          : findMisfit(shape.some, value, path, typespace);
      }
      if (!isObject(value)) return wrong(shape.kind === "result" ? "{ ok } or { err }" : "{ tag, value }");
      if (shape.kind === "result") {
        if ("ok" in value) return findMisfit(shape.ok, value.ok, `${path}.ok`, typespace);
        if ("err" in value) return findMisfit(shape.err, value.err, `${path}.err`, typespace);
        return wrong("{ ok } or { err }");
      }
      const variant = type.value.variants.find(({ name }) => name === value.tag);
      if (!variant) {
        const names = type.value.variants.map(({ name }) => JSON.stringify(name)).join(", ");
        return `${place}.tag: expected one of ${names}, got ${describe(value.tag)}`;
      }
      return findMisfit(variant.algebraicType, value.value, `${path}.value`, typespace);
    }
    default: {
      const { fits, expected } = CHECKS[type.tag]!;
      return fits(value) ? undefined : wrong(expected);
    }
  }
}

const SPECIAL_NAMES: Record<string, string> = {
  __identity__: "an Identity",
  __connection_id__: "a ConnectionId",
  __timestamp_micros_since_unix_epoch__: "a Timestamp",
  __time_duration_micros__: "a TimeDuration",
  __uuid__: "a Uuid",
};

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
