import type { AlgebraicTypeType, TypespaceType } from "./algebraic_type";
import { CHECKS, isBytes, isList, isObject, misfit } from "./checks";
import { checkEmptyElements } from "./closures";
import { deserializerOf, isUnit, productShape, resolve, serializerOf, sumShape } from "./codec";
import { badTag, badValue } from "./errors";
import { SPECIAL_CLASSES } from "./special";
import type { AnyDeserializer, AnySerializer } from "./untyped";

// Makes one straight function for a type. Runs of fixed-size fields are read and written through the DataView at constant
// distances from one offset, without a call for each field.

/** DataView accessor and size of the numbers that have one. */
const ACCESSORS: Record<string, [accessor: string, size: number]> = {
  I8: ["Int8", 1],
  U8: ["Uint8", 1],
  I16: ["Int16", 2],
  U16: ["Uint16", 2],
  I32: ["Int32", 4],
  U32: ["Uint32", 4],
  I64: ["BigInt64", 8],
  U64: ["BigUint64", 8],
  F32: ["Float32", 4],
  F64: ["Float64", 8],
};

/** Identifiers that generated code may use as they are; anything else becomes a string literal. */
const key = (name: string | undefined) => JSON.stringify(String(name));
const member = (object: string, name: string | undefined) => `${object}[${key(name)}]`;

abstract class Generator {
  protected body = "";
  protected names = 0;
  protected readonly typespace: TypespaceType | undefined;
  /** The types around the current place: one that comes again contains itself, and calls its own function. */
  protected readonly around = new Set<AlgebraicTypeType>();
  /** Bytes that were read or written after the offset in `o`. */
  protected ahead = 0;
  private readonly outside: unknown[] = [];
  private readonly outsideNames: string[] = [];

  constructor(typespace: TypespaceType | undefined) {
    this.typespace = typespace;
  }

  /** The name under which generated code sees `value`. */
  protected capture(value: unknown): string {
    const known = this.outside.indexOf(value);
    if (known >= 0) return this.outsideNames[known]!;
    const name = `c${this.outside.length}`;
    this.outside.push(value);
    this.outsideNames.push(name);
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
    return new Function(...this.outsideNames, `"use strict";return ${source}`)(...this.outside);
  }
}

class ReadGenerator extends Generator {
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
        const { typespace } = this;
        // Found when it runs, since a type may contain itself.
        return this.call(`${this.capture(() => deserializerOf(target, typespace))}()(r)`);
      }
      case "Product":
      case "Sum": {
        if (this.around.has(type)) {
          const { typespace } = this;
          return this.call(`${this.capture(() => deserializerOf(type, typespace))}()(r)`);
        }
        this.around.add(type);
        const result = type.tag === "Product" ? this.product(type) : this.sum(type);
        this.around.delete(type);
        return result;
      }
      case "Array":
        return type.value.tag === "U8" ? this.call("r.readUInt8Array()") : this.array(type.value);
      case "String":
        return this.call("r.readString()");
      case "Bool":
        return this.constant(`d.getUint8(${this.at()})!==0`, 1);
      case "U128":
      case "I128":
      case "U256":
      case "I256":
        return this.call(`r.read${type.tag}()`);
      default: {
        const [accessor, size] = ACCESSORS[type.tag]!;
        return this.constant(`d.get${accessor}(${this.at()}${size > 1 ? ",true" : ""})`, size);
      }
    }
  }

  private constant(expression: string, size: number): string {
    const name = this.fresh();
    this.body += `const ${name}=${expression};`;
    this.ahead += size;
    return name;
  }

  private call(expression: string): string {
    this.settle();
    const name = this.fresh();
    this.body += `r.offset=o;const ${name}=${expression};o=r.offset;`;
    return name;
  }

  private product(type: AlgebraicTypeType & { tag: "Product" }): string {
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

  private array(element: AlgebraicTypeType): string {
    const count = this.constant(`d.getUint32(${this.at()},true)`, 4);
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

  private sum(type: AlgebraicTypeType & { tag: "Sum" }): string {
    const shape = sumShape(type.value);
    const tag = this.constant(`d.getUint8(${this.at()})`, 1);
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

class WriteGenerator extends Generator {
  /** Whether values are tested before they are written. */
  private readonly isChecked: boolean;

  constructor(typespace: TypespaceType | undefined, isChecked: boolean) {
    super(typespace);
    this.isChecked = isChecked;
  }

  /** Position in `body` where room for the current run of fixed-size fields is to be made. */
  private reserveAt = -1;

  function(type: AlgebraicTypeType): AnySerializer {
    this.write(type, "x");
    this.settle();
    return this.build(`function(w,x){let b=w.buffer,d=b.view,o=w.offset;${this.body}w.offset=o;}`);
  }

  private reserve(size: number): string {
    if (this.reserveAt < 0) this.reserveAt = this.body.length;
    const at = this.at();
    this.ahead += size;
    return at;
  }

  /** Ends a run: makes room for it at its start, and moves the offset. */
  protected override settle(): void {
    if (this.reserveAt >= 0) {
      const room = `if(o+${this.ahead}>d.byteLength){w.offset=o;w.expandBuffer(${this.ahead});b=w.buffer;d=b.view;}`;
      this.body = this.body.slice(0, this.reserveAt) + room + this.body.slice(this.reserveAt);
      this.reserveAt = -1;
    }
    super.settle();
  }

  private call(statement: string): void {
    this.settle();
    this.body += `w.offset=o;${statement};o=w.offset;b=w.buffer;d=b.view;`;
  }

  /** A name for a value that is used more than once. */
  private named(value: string): string {
    if (/^[a-z][0-9]*$/.test(value)) return value;
    const name = this.fresh();
    this.body += `const ${name}=${value};`;
    return name;
  }

  private failIf(condition: string): void {
    this.body += `if(${condition})${this.capture(misfit)}();`;
  }

  /** With checks, emits that of a value; returns the expression to write. */
  private checked(type: AlgebraicTypeType, value: string): string {
    const check = this.isChecked ? CHECKS[type.tag] : undefined;
    if (!check) return value;
    const name = this.named(value);
    this.failIf(check.misfits(name));
    return name;
  }

  /** With checks, emits that a value is what `test` wants; returns the expression to go on with. */
  private tested(test: (value: unknown) => boolean, value: string): string {
    if (!this.isChecked) return value;
    const name = this.named(value);
    this.failIf(
      test === isObject ? `typeof ${name}!=="object"||${name}===null` : `!${this.capture(test)}(${name})`,
    );
    return name;
  }

  write(type: AlgebraicTypeType, unchecked: string): void {
    const value = this.checked(type, unchecked);
    switch (type.tag) {
      case "Ref": {
        const target = resolve(type.value, this.typespace);
        const { typespace, isChecked } = this;
        this.call(`${this.capture(() => serializerOf(target, typespace, isChecked))}()(w,${value})`);
        return;
      }
      case "Product":
      case "Sum": {
        if (this.around.has(type)) {
          const { typespace, isChecked } = this;
          this.call(`${this.capture(() => serializerOf(type, typespace, isChecked))}()(w,${value})`);
          return;
        }
        this.around.add(type);
        if (type.tag === "Product") this.product(type, value);
        else this.sum(type, value);
        this.around.delete(type);
        return;
      }
      case "Array":
        if (type.value.tag === "U8") this.call(`w.writeUInt8Array(${this.tested(isBytes, value)})`);
        else this.array(type.value, value);
        return;
      case "String":
        this.call(`w.writeString(${value})`);
        return;
      case "Bool": {
        const at = this.reserve(1);
        this.body += `d.setUint8(${at},${value}?1:0);`;
        return;
      }
      case "U128":
      case "I128":
      case "U256":
      case "I256":
        this.call(`w.write${type.tag}(${value})`);
        return;
      default: {
        const [accessor, size] = ACCESSORS[type.tag]!;
        const at = this.reserve(size);
        this.body += `d.set${accessor}(${at},${value}${size > 1 ? ",true" : ""});`;
      }
    }
  }

  private product(type: AlgebraicTypeType & { tag: "Product" }, value: string): void {
    const shape = productShape(type.value);
    if (shape.kind === "special") {
      this.write(shape.type, member(this.tested(isObject, value), shape.field));
      return;
    }
    if (type.value.elements.length === 0) return;
    const object = this.named(this.tested(isObject, value));
    for (const element of type.value.elements) {
      this.write(element.algebraicType, member(object, element.name));
    }
  }

  private tag(number: number): void {
    const at = this.reserve(1);
    this.body += `d.setUint8(${at},${number});`;
  }

  private array(element: AlgebraicTypeType, value: string): void {
    const values = this.fresh();
    const item = this.fresh();
    this.settle();
    this.body += `const ${values}=${value};`;
    this.tested(isList, values);
    const at = this.reserve(4);
    this.body += `d.setUint32(${at},${values}.length,true);`;
    this.settle();
    this.body += `for(const ${item} of ${values}){`;
    this.write(element, item);
    this.settle();
    this.body += "}";
  }

  private sum(type: AlgebraicTypeType & { tag: "Sum" }, value: string): void {
    const shape = sumShape(type.value);
    this.settle();
    const sum = this.fresh();
    this.body += `const ${sum}=${value};`;
    if (shape.kind === "option") {
      this.body += `if(${sum}===undefined||${sum}===null){`;
      this.tag(1);
      this.settle();
      this.body += "}else{";
      this.tag(0);
      this.write(shape.some, sum);
      this.settle();
      this.body += "}";
    } else if (shape.kind === "result") {
      this.tested(isObject, sum);
      for (const [number, name, payload] of [
        [0, "ok", shape.ok],
        [1, "err", shape.err],
      ] as const) {
        this.body += `if("${name}" in ${sum}){`;
        this.tag(number);
        this.write(payload, `${sum}.${name}`);
        this.settle();
        this.body += "}else ";
      }
      this.body += `throw ${this.capture(badValue)}("a result needs a field \`ok\` or \`err\`");`;
    } else {
      this.tested(isObject, sum);
      this.body += `switch(${sum}.tag){`;
      type.value.variants.forEach((variant, number) => {
        this.body += `case ${key(variant.name)}:{`;
        this.tag(number);
        if (!isUnit(variant.algebraicType)) this.write(variant.algebraicType, `${sum}.value`);
        this.settle();
        this.body += "break}";
      });
      this.body += `default:throw ${this.capture(badValue)}("the type has no variant named "+${sum}.tag);}`;
    }
  }
}

export function generateDeserializer(type: AlgebraicTypeType, typespace?: TypespaceType): AnyDeserializer {
  return new ReadGenerator(typespace).function(type);
}

export function generateSerializer(
  type: AlgebraicTypeType,
  typespace: TypespaceType | undefined,
  isChecked: boolean,
): AnySerializer {
  return new WriteGenerator(typespace, isChecked).function(type);
}
