import * as AlgebraicTypeVariants from "./algebraic_type_variants";
import type { BinaryReader } from "./binary_reader";
import { BinaryWriter } from "./binary_writer";
import { Misfit } from "./checks";
import { deserializerOf, serializerOf } from "./codec";
import { type PrimitiveTag, primitiveTags } from "./primitives";
import { productShape } from "./shapes";
import type { AlgebraicTypeType, ProductTypeType, SumTypeType, TypespaceType } from "./type_tree";
import type { AnyDeserializer, AnySerializer } from "./untyped";

export type {
  AlgebraicTypeType,
  ProductTypeElement,
  ProductTypeType,
  SumTypeType,
  SumTypeVariant,
  TypespaceType,
} from "./type_tree";
export { AlgebraicTypeVariants };

/** Writes values of a type. */
export type Serializer<T> = (writer: BinaryWriter, value: T) => void;
/** Reads values of a type. */
export type Deserializer<T> = (reader: BinaryReader) => T;

/** A key of a `Map` that stands for a value. */
export type ComparablePrimitive = number | string | boolean | bigint;

type Primitives = { readonly [Tag in PrimitiveTag]: { readonly tag: Tag } };

function primitives(): Primitives {
  return Object.fromEntries(primitiveTags().map((tag) => [tag, { tag }])) as Primitives;
}

/** Types whose values are primitives that are equal for equal values. */
const PRIMITIVES = /* @__PURE__ */ primitives();

/** Makes types, and functions that read and write their values. */
export type AlgebraicType = AlgebraicTypeType;
/** Makes types, and functions that read and write their values. */
export const AlgebraicType = {
  ...PRIMITIVES,
  Ref: (value: number): AlgebraicTypeVariants.Ref => ({ tag: "Ref", value }),
  Array: <T extends AlgebraicTypeType>(value: T): { tag: "Array"; value: T } => ({ tag: "Array", value }),
  Sum: <T extends SumTypeType>(value: T): { tag: "Sum"; value: T } => ({ tag: "Sum", value }),
  Product: <T extends ProductTypeType>(value: T): { tag: "Product"; value: T } => ({ tag: "Product", value }),

  /** A function that writes values of `ty`; it is made once for each type. */
  makeSerializer(ty: AlgebraicTypeType, typespace?: TypespaceType): AnySerializer {
    return serializerOf(ty, typespace);
  },
  /** A function that reads values of `ty`; it is made once for each type. */
  makeDeserializer(ty: AlgebraicTypeType, typespace?: TypespaceType): AnyDeserializer {
    return deserializerOf(ty, typespace);
  },
  /** @deprecated Use `makeSerializer`. */
  serializeValue(writer: BinaryWriter, ty: AlgebraicTypeType, value: any, typespace?: TypespaceType): void {
    serializerOf(ty, typespace)(writer, value);
  },
  /** @deprecated Use `makeDeserializer`. */
  deserializeValue(reader: BinaryReader, ty: AlgebraicTypeType, typespace?: TypespaceType): any {
    return deserializerOf(ty, typespace)(reader);
  },

  /** A primitive that is equal for equal values of the same type, to be used as a key of a `Map`. */
  intoMapKey(ty: AlgebraicTypeType, value: any): ComparablePrimitive {
    if (ty.tag in PRIMITIVES) return value;
    return ty.tag === "Product" ? ProductType.intoMapKey(ty.value, value) : bytesAsKey(ty, value);
  },
};

function bytesAsKey(ty: AlgebraicTypeType, value: any): string {
  const writer = new BinaryWriter(64);
  serializerOf(ty)(writer, value);
  return writer.toBase64();
}

/** A product on its own, without the tag that makes it an `AlgebraicType`. */
export type ProductType = ProductTypeType;
export const ProductType = {
  /** @internal As `makeSerializer`; an argument that does not fit is an error that says which one and why. */
  makeArgumentsSerializer(ty: ProductTypeType): AnySerializer {
    const known = argumentsSerializers.get(ty);
    if (known !== undefined) return known;
    const type = wrapped("Product", ty);
    const made: AnySerializer = (writer, value) => {
      try {
        serializerOf(type, undefined, true)(writer, value);
      } catch (error) {
        throw error instanceof Misfit ? new TypeError(error.message) : error;
      }
    };
    argumentsSerializers.set(ty, made);
    return made;
  },
  makeSerializer(ty: ProductTypeType, typespace?: TypespaceType): AnySerializer {
    return serializerOf(wrapped("Product", ty), typespace);
  },
  makeDeserializer(ty: ProductTypeType, typespace?: TypespaceType): AnyDeserializer {
    return deserializerOf(wrapped("Product", ty), typespace);
  },
  /** @deprecated Use `makeSerializer`. */
  serializeValue(writer: BinaryWriter, ty: ProductTypeType, value: any, typespace?: TypespaceType): void {
    ProductType.makeSerializer(ty, typespace)(writer, value);
  },
  /** @deprecated Use `makeDeserializer`. */
  deserializeValue(reader: BinaryReader, ty: ProductTypeType, typespace?: TypespaceType): any {
    return ProductType.makeDeserializer(ty, typespace)(reader);
  },
  intoMapKey(ty: ProductTypeType, value: any): ComparablePrimitive {
    const shape = productShape(ty);
    if (shape.kind === "special") return value[shape.field];
    return bytesAsKey(wrapped("Product", ty), value);
  },
};

/** A sum on its own, without the tag that makes it an `AlgebraicType`. */
export type SumType = SumTypeType;
export const SumType = {
  makeSerializer(ty: SumTypeType, typespace?: TypespaceType): AnySerializer {
    return serializerOf(wrapped("Sum", ty), typespace);
  },
  makeDeserializer(ty: SumTypeType, typespace?: TypespaceType): AnyDeserializer {
    return deserializerOf(wrapped("Sum", ty), typespace);
  },
  /** @deprecated Use `makeSerializer`. */
  serializeValue(writer: BinaryWriter, ty: SumTypeType, value: any, typespace?: TypespaceType): void {
    SumType.makeSerializer(ty, typespace)(writer, value);
  },
  /** @deprecated Use `makeDeserializer`. */
  deserializeValue(reader: BinaryReader, ty: SumTypeType, typespace?: TypespaceType): any {
    return SumType.makeDeserializer(ty, typespace)(reader);
  },
};

const argumentsSerializers = /* @__PURE__ */ new WeakMap<object, AnySerializer>();
const wrappers = /* @__PURE__ */ new WeakMap<object, AlgebraicTypeType>();

/** The same `AlgebraicType` for the same product or sum, so that its functions are made once. */
function wrapped(tag: "Product" | "Sum", value: any): AlgebraicTypeType {
  const known = wrappers.get(value);
  if (known !== undefined) return known;
  const type: AlgebraicTypeType = { tag, value };
  wrappers.set(value, type);
  return type;
}
