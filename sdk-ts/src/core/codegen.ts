import { checkEmptyElements, type DeserializerOf } from "./closures";
import { badTag } from "./errors";
import { NUMBERS, type NumberType } from "./primitives";
import { productShape, resolve, sumShape } from "./shapes";
import { SPECIAL_CLASSES } from "./special";
import type { AlgebraicTypeType, TypespaceType } from "./type_tree";
import type { AnyDeserializer } from "./untyped";

// Makes one straight function for a type. Runs of fixed-size fields are read and written through the DataView at constant
// distances from one offset, without a call for each field.

/** Identifiers that generated code may use as they are; anything else becomes a string literal. */
export const key = (name: string | undefined) => JSON.stringify(String(name));

export abstract class Generator {
  protected body = "";
  protected names = 0;
  protected readonly typespace: TypespaceType | undefined;
  /** The types around the current place: one that comes again contains itself, and calls its own function. */
  protected readonly around = new Set<AlgebraicTypeType>();
  /** Bytes that were read or written after the offset in `o`. */
  protected ahead = 0;
  readonly #outside: unknown[] = [];
  readonly #outsideNames: string[] = [];

  constructor(typespace: TypespaceType | undefined) {
    this.typespace = typespace;
  }

  /** The name under which generated code sees `value`. */
  protected capture(value: unknown): string {
    const known = this.#outside.indexOf(value);
    if (known >= 0) return this.#outsideNames[known]!;
    const name = `c${this.#outside.length}`;
    this.#outside.push(value);
    this.#outsideNames.push(name);
    return name;
  }

  protected fresh(): string {
    return `v${this.names++}`;
  }

  protected at(): string {
    return this.ahead === 0 ? "o" : `o+${this.ahead}`;
  }

  /** Makes `o` the real offset. */
  protected settle(): void {
    if (this.ahead !== 0) {
      this.body += `o+=${this.ahead};`;
      this.ahead = 0;
    }
  }

  protected build(source: string): any {
    return new Function(...this.#outsideNames, `"use strict";return ${source}`)(...this.#outside);
  }
}

class ReadGenerator extends Generator {
  readonly #deserializerOf: DeserializerOf;

  constructor(typespace: TypespaceType | undefined, deserializerOf: DeserializerOf) {
    super(typespace);
    this.#deserializerOf = deserializerOf;
  }

  function(type: AlgebraicTypeType): AnyDeserializer {
    const result = this.read(type);
    this.settle();
    return this.build(`function(r){const d=r.view;let o=r.offset;${this.body}r.offset=o;return ${result};}`);
  }

  /** Emits the reading of `type`; returns the expression of its value, to be used once. */
  read(type: AlgebraicTypeType): string {
    switch (type.tag) {
      case "Ref": {
        const target = resolve(type.value, this.typespace);
        return this.#called(target);
      }
      case "Product":
      case "Sum": {
        if (this.around.has(type)) return this.#called(type);
        this.around.add(type);
        const result = type.tag === "Product" ? this.#product(type) : this.#sum(type);
        this.around.delete(type);
        return result;
      }
      case "Array":
        return type.value.tag === "U8" ? this.#call("r.readUInt8Array()") : this.#array(type.value);
      case "String":
        return this.#call("r.readString()");
      case "Bool":
        return this.#constant(`d.getUint8(${this.at()})!==0`, 1);
      default: {
        const { accessor, bytes } = NUMBERS[type.tag] as NumberType;
        if (accessor === undefined) return this.#call(`r.read${type.tag}()`);
        return this.#constant(`d.get${accessor}(${this.at()}${bytes > 1 ? ",true" : ""})`, bytes);
      }
    }
  }

  #constant(expression: string, size: number): string {
    const name = this.fresh();
    this.body += `const ${name}=${expression};`;
    this.ahead += size;
    return name;
  }

  #call(expression: string): string {
    this.settle();
    const name = this.fresh();
    this.body += `r.offset=o;const ${name}=${expression};o=r.offset;`;
    return name;
  }

  /** The reading of a type that has a function of its own, found when it runs, since a type may contain itself. */
  #called(type: AlgebraicTypeType): string {
    const { typespace } = this;
    const deserializerOf = this.#deserializerOf;
    return this.#call(`${this.capture(() => deserializerOf(type, typespace))}()(r)`);
  }

  #product(type: AlgebraicTypeType & { tag: "Product" }): string {
    const shape = productShape(type.value);
    if (shape.kind === "special") {
      const value = this.read(shape.type);
      return `new ${this.capture(SPECIAL_CLASSES[shape.field])}(${value})`;
    }
    const fields = type.value.elements.map((element) => {
      const value = this.read(element.algebraicType);
      // A computed name is an ordinary property even if it is `__proto__`.
      const name = element.name === "__proto__" ? '["__proto__"]' : key(element.name);
      return `${name}:${value}`;
    });
    return `{${fields.join(",")}}`;
  }

  #array(element: AlgebraicTypeType): string {
    const count = this.#constant(`d.getUint32(${this.at()},true)`, 4);
    this.settle();
    const values = this.fresh();
    const start = this.fresh();
    const index = this.fresh();
    this.body += `const ${values}=[],${start}=o;for(let ${index}=0;${index}<${count};${index}++){`;
    const value = this.read(element);
    this.settle();
    this.body += `${values}.push(${value});`;
    this.body += `if(o===${start})${this.capture(checkEmptyElements)}(${count});}`;
    return values;
  }

  #sum(type: AlgebraicTypeType & { tag: "Sum" }): string {
    const shape = sumShape(type.value);
    const tag = this.#constant(`d.getUint8(${this.at()})`, 1);
    this.settle();
    const result = this.fresh();
    this.body += `let ${result};switch(${tag}){`;
    type.value.variants.forEach((variant, number) => {
      this.body += `case ${number}:{`;
      if (shape.kind === "option" && number === 1) {
        this.body += `${result}=undefined;`;
      } else {
        const value = this.read(variant.algebraicType);
        this.settle();
        const wrapped =
          shape.kind === "option"
            ? value
            : shape.kind === "result"
              ? `{${variant.name}:${value}}`
              : `{tag:${key(variant.name)},value:${value}}`;
        this.body += `${result}=${wrapped};`;
      }
      this.body += "break}";
    });
    const name = shape.kind === "option" ? "an option" : shape.kind === "result" ? "a result" : "the sum";
    this.body += `default:throw ${this.capture(badTag)}(${tag},${key(name)})}`;
    return result;
  }
}

export function generateDeserializer(
  type: AlgebraicTypeType,
  typespace: TypespaceType | undefined,
  deserializerOf: DeserializerOf,
): AnyDeserializer {
  return new ReadGenerator(typespace, deserializerOf).function(type);
}
