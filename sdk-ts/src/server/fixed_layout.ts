import { productShape, resolve } from "../core/shapes";
import { SPECIAL_CLASSES } from "../core/special";
import type { AlgebraicTypeType, TypespaceType } from "../core/type_tree";
import type { AnyFunction } from "../core/untyped";

// Rows and keys that always take the same number of bytes are read and written at constant places of one buffer, by code
// that is made once for each table.

/** DataView accessor, size, and the name of the typed array that serves where the place is a multiple of the size. */
const ACCESSORS: Record<string, [accessor: string, size: number, array: string]> = {
  I8: ["Int8", 1, "i1"],
  U8: ["Uint8", 1, "u1"],
  I16: ["Int16", 2, "i2"],
  U16: ["Uint16", 2, "u2"],
  I32: ["Int32", 4, "i4"],
  U32: ["Uint32", 4, "u4"],
  I64: ["BigInt64", 8, "i8"],
  U64: ["BigUint64", 8, "u8"],
  F32: ["Float32", 4, "f4"],
  F64: ["Float64", 8, "f8"],
};

const IS_LITTLE_ENDIAN = /* @__PURE__ */ new Uint8Array(/* @__PURE__ */ new Uint16Array([1]).buffer)[0] === 1;

/** The names by which generated code sees a buffer, whose length must be a multiple of 8. */
export function bufferNames(buffer: ArrayBuffer): Record<string, unknown> {
  return {
    B: buffer,
    V: new DataView(buffer),
    i1: new Int8Array(buffer),
    u1: new Uint8Array(buffer),
    i2: new Int16Array(buffer),
    u2: new Uint16Array(buffer),
    i4: new Int32Array(buffer),
    u4: new Uint32Array(buffer),
    i8: new BigInt64Array(buffer),
    u8: new BigUint64Array(buffer),
    f4: new Float32Array(buffer),
    f8: new Float64Array(buffer),
  };
}

/** The access to a number: an element of an array, which is the fastest, or undefined. */
function element(type: string, at: number): string | undefined {
  const [, size, array] = ACCESSORS[type]!;
  return IS_LITTLE_ENDIAN && at % size === 0 ? `${array}[${at / size}]` : undefined;
}

/** The size of all values of a type, or undefined if it depends on the value. */
export function fixedSize(type: AlgebraicTypeType, typespace: TypespaceType): number | undefined {
  switch (type.tag) {
    case "Bool":
      return 1;
    case "U128":
    case "I128":
      return 16;
    case "U256":
    case "I256":
      return 32;
    case "Ref": {
      const target = resolve(type.value, typespace);
      // Of the types that may contain themselves, only products can have a fixed size, and those would be infinite.
      return target.tag === "Product" ? fixedSize(target, typespace) : undefined;
    }
    case "Product": {
      let total = 0;
      for (const element of type.value.elements) {
        const size = fixedSize(element.algebraicType, typespace);
        if (size === undefined) return undefined;
        total += size;
      }
      return total;
    }
    default:
      return ACCESSORS[type.tag]?.[1];
  }
}

/** Makes source text that reads and writes the buffer of `bufferNames`; `C` is an object of classes. */
export class FixedLayout {
  private readonly typespace: TypespaceType;

  constructor(typespace: TypespaceType) {
    this.typespace = typespace;
  }

  /** Statements that write the value of an expression. */
  write(type: AlgebraicTypeType, value: string, at: number): string {
    switch (type.tag) {
      case "Bool":
        return `V.setUint8(${at},${value}?1:0);`;
      case "U128":
      case "I128":
        return `V.setBigUint64(${at},${value}&M,true);V.setBigUint64(${at + 8},${value}>>64n,true);`;
      case "U256":
      case "I256":
        return [0, 64, 128, 192]
          .map((shift) => `V.setBigUint64(${at + shift / 8},(${value}>>${shift}n)&M,true);`)
          .join("");
      case "Ref":
        return this.write(resolve(type.value, this.typespace), value, at);
      case "Product": {
        const shape = productShape(type.value);
        if (shape.kind === "special") return this.write(shape.type, `${value}.${shape.field}`, at);
        return type.value.elements
          .map(({ name, algebraicType }) => {
            const text = this.write(algebraicType, `${value}[${JSON.stringify(name)}]`, at);
            at += fixedSize(algebraicType, this.typespace)!;
            return text;
          })
          .join("");
      }
      default: {
        const place = element(type.tag, at);
        if (place !== undefined) return `${place}=${value};`;
        const [accessor, size] = ACCESSORS[type.tag]!;
        return `V.set${accessor}(${at},${value}${size > 1 ? ",true" : ""});`;
      }
    }
  }

  /** An expression that reads a value. */
  read(type: AlgebraicTypeType, at: number): string {
    switch (type.tag) {
      case "Bool":
        return `V.getUint8(${at})!==0`;
      case "U128":
        return `(V.getBigUint64(${at + 8},true)<<64n|V.getBigUint64(${at},true))`;
      case "I128":
        return `(V.getBigInt64(${at + 8},true)<<64n|V.getBigUint64(${at},true))`;
      case "U256":
      case "I256": {
        const top = type.tag === "U256" ? "Uint" : "Int";
        return `(V.getBig${top}64(${at + 24},true)<<192n|V.getBigUint64(${at + 16},true)<<128n|V.getBigUint64(${at + 8},true)<<64n|V.getBigUint64(${at},true))`;
      }
      case "Ref":
        return this.read(resolve(type.value, this.typespace), at);
      case "Product": {
        const shape = productShape(type.value);
        if (shape.kind === "special") return `new C.${shape.field}(${this.read(shape.type, at)})`;
        const fields = type.value.elements.map(({ name, algebraicType }) => {
          const text = `[${JSON.stringify(name)}]:${this.read(algebraicType, at)}`;
          at += fixedSize(algebraicType, this.typespace)!;
          return /^[A-Za-z_$][\w$]*$/.test(name!) && name !== "__proto__"
            ? `${name}${text.slice(text.indexOf("]") + 1)}`
            : text;
        });
        return `{${fields.join(",")}}`;
      }
      default: {
        const place = element(type.tag, at);
        if (place !== undefined) return place;
        const [accessor, size] = ACCESSORS[type.tag]!;
        return `V.get${accessor}(${at}${size > 1 ? ",true" : ""})`;
      }
    }
  }

  /** Makes a function of source text that sees `names`. */
  static function(source: string, names: Record<string, unknown>): AnyFunction {
    const all = { C: SPECIAL_CLASSES, M: 0xffff_ffff_ffff_ffffn, ...names };
    return new Function(...Object.keys(all), `"use strict";return ${source}`)(...Object.values(all));
  }
}
