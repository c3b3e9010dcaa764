import { serializerOf } from "./codec";
import { Generator, key } from "./codegen";
import { badValue } from "./errors";
import { NUMBERS, type NumberType } from "./primitives";
import { isUnit, productShape, resolve, sumShape } from "./shapes";
import type { AlgebraicTypeType, TypespaceType } from "./type_tree";
import type { AnySerializer } from "./untyped";

// The other direction. Modules use it for the rows that they write; clients, which write arguments only, do not load it.

const member = (object: string, name: string | undefined) => `${object}[${key(name)}]`;

class WriteGenerator extends Generator {
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

  write(type: AlgebraicTypeType, value: string): void {
    switch (type.tag) {
      case "Ref": {
        const target = resolve(type.value, this.typespace);
        const { typespace } = this;
        this.call(`${this.capture(() => serializerOf(target, typespace))}()(w,${value})`);
        return;
      }
      case "Product":
      case "Sum": {
        if (this.around.has(type)) {
          const { typespace } = this;
          this.call(`${this.capture(() => serializerOf(type, typespace))}()(w,${value})`);
          return;
        }
        this.around.add(type);
        if (type.tag === "Product") this.product(type, value);
        else this.sum(type, value);
        this.around.delete(type);
        return;
      }
      case "Array":
        if (type.value.tag === "U8") this.call(`w.writeUInt8Array(${value})`);
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
      default: {
        const { accessor, bytes } = NUMBERS[type.tag] as NumberType;
        if (accessor === undefined) {
          this.call(`w.write${type.tag}(${value})`);
          return;
        }
        const at = this.reserve(bytes);
        this.body += `d.set${accessor}(${at},${value}${bytes > 1 ? ",true" : ""});`;
      }
    }
  }

  private product(type: AlgebraicTypeType & { tag: "Product" }, value: string): void {
    const shape = productShape(type.value);
    if (shape.kind === "special") {
      this.write(shape.type, member(value, shape.field));
      return;
    }
    if (type.value.elements.length === 0) return;
    const object = this.named(value);
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

export function generateSerializer(type: AlgebraicTypeType, typespace?: TypespaceType): AnySerializer {
  return new WriteGenerator(typespace).function(type);
}
