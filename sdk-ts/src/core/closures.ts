import { checkOf, Misfit } from "./checks";
import { badTag, badValue } from "./errors";
import { isUnit, productShape, resolve, sumShape } from "./shapes";
import { makeSpecial } from "./special";
import type { AlgebraicTypeType, TypespaceType } from "./type_tree";
import type { AnyDeserializer, AnySerializer } from "./untyped";

// The same functions as in codegen.ts, put together from closures, for places that forbid making code from text.

/** Gives the functions for the parts of a type: those that are made already, if they are. */
export type SerializerOf = (
  type: AlgebraicTypeType,
  typespace: TypespaceType | undefined,
  isChecked: boolean,
) => AnySerializer;
export type DeserializerOf = (
  type: AlgebraicTypeType,
  typespace: TypespaceType | undefined,
) => AnyDeserializer;

/** At most so many elements that take no bytes. */
export const MAX_EMPTY_ELEMENTS = 1_000_000;

export function checkEmptyElements(count: number): void {
  if (count > MAX_EMPTY_ELEMENTS) throw badValue(`an array of ${count} elements without content is too long`);
}

/** The function for a part of a type; the parts of one that contains itself are made when first needed. */
function writerOf(
  type: AlgebraicTypeType,
  typespace: TypespaceType | undefined,
  isChecked: boolean,
  serializerOf: SerializerOf,
): AnySerializer {
  if (type.tag !== "Product" && type.tag !== "Sum")
    return closureSerializer(type, typespace, isChecked, serializerOf);
  return (writer, value) => serializerOf(type, typespace, isChecked)(writer, value);
}

function readerOf(
  type: AlgebraicTypeType,
  typespace: TypespaceType | undefined,
  deserializerOf: DeserializerOf,
): AnyDeserializer {
  if (type.tag !== "Product" && type.tag !== "Sum")
    return closureDeserializer(type, typespace, deserializerOf);
  return (reader) => deserializerOf(type, typespace)(reader);
}

/** With checks, what does not fit is thrown as a `Misfit`. */
export function closureSerializer(
  type: AlgebraicTypeType,
  typespace: TypespaceType | undefined,
  isChecked: boolean,
  serializerOf: SerializerOf,
): AnySerializer {
  const check = isChecked ? checkOf(type) : undefined;
  const write = uncheckedClosure(type, typespace, isChecked, serializerOf);
  if (!check) return write;
  const { fits, expected } = check;
  return (writer, value) => {
    if (!fits(value)) throw new Misfit(expected, value);
    write(writer, value);
  };
}

/** An exception for a part of a value. */
function thrownWithin(part: string, thrown: unknown): unknown {
  return thrown instanceof Misfit ? thrown.within(part) : thrown;
}

function uncheckedClosure(
  type: AlgebraicTypeType,
  typespace: TypespaceType | undefined,
  isChecked: boolean,
  serializerOf: SerializerOf,
): AnySerializer {
  switch (type.tag) {
    case "Ref": {
      const target = resolve(type.value, typespace);
      return (writer, value) => serializerOf(target, typespace, isChecked)(writer, value);
    }
    case "Product": {
      const shape = productShape(type.value);
      if (shape.kind === "special") {
        const write = writerOf(shape.type, typespace, isChecked, serializerOf);
        const { field } = shape;
        return (writer, value) => write(writer, value[field]);
      }
      const fields = type.value.elements.map((element) => ({
        name: element.name!,
        write: writerOf(element.algebraicType, typespace, isChecked, serializerOf),
      }));
      return (writer, value) => {
        let name = "";
        try {
          for (const field of fields) {
            name = field.name;
            field.write(writer, value[name]);
          }
        } catch (error) {
          throw thrownWithin(`.${name}`, error);
        }
      };
    }
    case "Sum": {
      const shape = sumShape(type.value);
      if (shape.kind === "option") {
        const write = writerOf(shape.some, typespace, isChecked, serializerOf);
        return (writer, value) => {
          if (value === undefined || value === null) {
            writer.writeU8(1);
          } else {
            writer.writeU8(0);
            write(writer, value);
          }
        };
      }
      if (shape.kind === "result") {
        const ok = writerOf(shape.ok, typespace, isChecked, serializerOf);
        const err = writerOf(shape.err, typespace, isChecked, serializerOf);
        return (writer, value) => {
          const isOk = "ok" in value;
          if (!isOk && !("err" in value)) throw badValue("a result needs a field `ok` or `err`");
          writer.writeU8(isOk ? 0 : 1);
          try {
            if (isOk) ok(writer, value.ok);
            else err(writer, value.err);
          } catch (error) {
            throw thrownWithin(isOk ? ".ok" : ".err", error);
          }
        };
      }
      const variants = new Map(
        type.value.variants.map((variant, tag) => [
          variant.name!,
          {
            tag,
            write: isUnit(variant.algebraicType)
              ? undefined
              : writerOf(variant.algebraicType, typespace, isChecked, serializerOf),
          },
        ]),
      );
      return (writer, value) => {
        const variant = variants.get(value.tag);
        if (variant === undefined) {
          if (!isChecked) throw badValue(`the type has no variant named ${value.tag}`);
          const names = [...variants.keys()].map((name) => JSON.stringify(name));
          throw new Misfit(`one of ${names.join(", ")}`, value.tag).within(".tag");
        }
        writer.writeU8(variant.tag);
        try {
          variant.write?.(writer, value.value);
        } catch (error) {
          throw thrownWithin(".value", error);
        }
      };
    }
    case "Array": {
      if (type.value.tag === "U8") return (writer, value) => writer.writeUInt8Array(value);
      const write = writerOf(type.value, typespace, isChecked, serializerOf);
      return (writer, value) => {
        writer.writeU32(value.length);
        let at = 0;
        try {
          for (const element of value) {
            write(writer, element);
            at += 1;
          }
        } catch (error) {
          throw thrownWithin(`[${at}]`, error);
        }
      };
    }
    case "Bool":
      return (writer, value) => writer.writeBool(value);
    case "String":
      return (writer, value) => writer.writeString(value);
    default: {
      const method = `write${type.tag}` as "writeU32";
      return (writer, value) => writer[method](value);
    }
  }
}

export function closureDeserializer(
  type: AlgebraicTypeType,
  typespace: TypespaceType | undefined,
  deserializerOf: DeserializerOf,
): AnyDeserializer {
  switch (type.tag) {
    case "Ref": {
      const target = resolve(type.value, typespace);
      return (reader) => deserializerOf(target, typespace)(reader);
    }
    case "Product": {
      const shape = productShape(type.value);
      if (shape.kind === "special") {
        const read = readerOf(shape.type, typespace, deserializerOf);
        const { field } = shape;
        return (reader) => makeSpecial(field, read(reader));
      }
      const fields = type.value.elements.map((element) => ({
        name: element.name!,
        read: readerOf(element.algebraicType, typespace, deserializerOf),
      }));
      return (reader) => {
        const value: any = {};
        for (const field of fields) value[field.name] = field.read(reader);
        return value;
      };
    }
    case "Sum": {
      const shape = sumShape(type.value);
      if (shape.kind === "option") {
        const read = readerOf(shape.some, typespace, deserializerOf);
        return (reader) => {
          const tag = reader.readU8();
          if (tag === 0) return read(reader);
          if (tag === 1) return undefined;
          throw badTag(tag, "an option");
        };
      }
      if (shape.kind === "result") {
        const ok = readerOf(shape.ok, typespace, deserializerOf);
        const err = readerOf(shape.err, typespace, deserializerOf);
        return (reader) => {
          const tag = reader.readU8();
          if (tag === 0) return { ok: ok(reader) };
          if (tag === 1) return { err: err(reader) };
          throw badTag(tag, "a result");
        };
      }
      const variants = type.value.variants.map((variant) => ({
        tag: variant.name!,
        read: readerOf(variant.algebraicType, typespace, deserializerOf),
      }));
      return (reader) => {
        const tag = reader.readU8();
        const variant = variants[tag];
        if (variant === undefined) throw badTag(tag, "the sum");
        return { tag: variant.tag, value: variant.read(reader) };
      };
    }
    case "Array": {
      if (type.value.tag === "U8") return (reader) => reader.readUInt8Array();
      const read = readerOf(type.value, typespace, deserializerOf);
      return (reader) => {
        const count = reader.readU32();
        const values: any[] = [];
        for (let i = 0; i < count; i++) {
          const before = reader.offset;
          values.push(read(reader));
          if (i === 0 && reader.offset === before) checkEmptyElements(count);
        }
        return values;
      };
    }
    case "Bool":
      return (reader) => reader.readBool();
    case "String":
      return (reader) => reader.readString();
    default: {
      const method = `read${type.tag}` as "readU32";
      return (reader) => reader[method]();
    }
  }
}
