import { numberType } from "../core/primitives";
import { productShape, resolve } from "../core/shapes";
import { SPECIAL_CLASSES } from "../core/special";
import type { AlgebraicTypeType, TypespaceType } from "../core/type_tree";
import type { AnyFunction } from "../core/untyped";

// Rows and keys that always take the same number of bytes are read and written at constant places of one buffer, by code
// that is made once for each table.

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

/** The name of the typed array that serves where the place is a multiple of the size: of numbers that `DataView` knows. */
function arrayOf(tag: string, bytes: number): string {
  return `${tag[0]!.toLowerCase()}${bytes}`;
}

/** The access to a number: an element of an array, which is the fastest, or undefined. */
function element(tag: string, bytes: number, at: number): string | undefined {
  return IS_LITTLE_ENDIAN && at % bytes === 0 ? `${arrayOf(tag, bytes)}[${at / bytes}]` : undefined;
}

/** The places of the 64-bit parts of a bigint, the lowest first. */
function parts(bytes: number): number[] {
  return Array.from({ length: bytes / 8 }, (_, part) => 8 * part);
}

/** The size of all values of a type, or undefined if it depends on the value. */
export function fixedSize(type: AlgebraicTypeType, typespace: TypespaceType): number | undefined {
  switch (type.tag) {
    case "Bool":
      return 1;
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
      return numberType(type.tag)?.bytes;
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
        const { accessor, bytes } = numberType(type.tag)!;
        if (accessor === undefined) {
          const part = (place: number) => {
            const shifted = place === 0 ? value : `(${value}>>${8 * place}n)`;
            const low = place + 8 === bytes ? shifted : `${shifted}&M`;
            return `V.setBigUint64(${at + place},${low},true);`;
          };
          return parts(bytes).map(part).join("");
        }
        const place = element(type.tag, bytes, at);
        if (place !== undefined) return `${place}=${value};`;
        return `V.set${accessor}(${at},${value}${bytes > 1 ? ",true" : ""});`;
      }
    }
  }

  /** An expression that reads a value. */
  read(type: AlgebraicTypeType, at: number): string {
    switch (type.tag) {
      case "Bool":
        return `V.getUint8(${at})!==0`;
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
        const { accessor, bytes } = numberType(type.tag)!;
        if (accessor === undefined) {
          // Only the highest part has the sign.
          const part = (place: number) => {
            const sign = place + 8 === bytes && type.tag.startsWith("I") ? "Int" : "Uint";
            const read = `V.getBig${sign}64(${at + place},true)`;
            return place === 0 ? read : `${read}<<${8 * place}n`;
          };
          return `(${parts(bytes).map(part).join("|")})`;
        }
        return element(type.tag, bytes, at) ?? `V.get${accessor}(${at}${bytes > 1 ? ",true" : ""})`;
      }
    }
  }

  /** Makes a function of source text that sees `names`. */
  static function(source: string, names: Record<string, unknown>): AnyFunction {
    const all = { C: SPECIAL_CLASSES, M: 0xffff_ffff_ffff_ffffn, ...names };
    return new Function(...Object.keys(all), `"use strict";return ${source}`)(...Object.values(all));
  }
}
