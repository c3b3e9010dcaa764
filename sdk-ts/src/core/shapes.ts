import { SPECIAL_NAMES } from "./special";
import type { AlgebraicTypeType, ProductTypeType, SumTypeType, TypespaceType } from "./type_tree";

/** The form of a product or sum in JavaScript (spec 01 §1.2.1); structural, names compared byte for byte. */
export type Shape =
  | { kind: "object" }
  | { kind: "special"; field: string; type: AlgebraicTypeType }
  | { kind: "option"; some: AlgebraicTypeType }
  | { kind: "result"; ok: AlgebraicTypeType; err: AlgebraicTypeType }
  | { kind: "sum" };

export function productShape(product: ProductTypeType): Shape {
  const field = product.elements[0];
  if (product.elements.length === 1 && field?.name !== undefined && SPECIAL_NAMES.has(field.name)) {
    return { kind: "special", field: field.name, type: field.algebraicType };
  }
  return { kind: "object" };
}

export function sumShape(sum: SumTypeType): Shape {
  const [first, second, ...more] = sum.variants;
  if (first !== undefined && second !== undefined && more.length === 0) {
    if (first.name === "some" && second.name === "none") {
      return { kind: "option", some: first.algebraicType };
    }
    if (first.name === "ok" && second.name === "err") {
      return { kind: "result", ok: first.algebraicType, err: second.algebraicType };
    }
  }
  return { kind: "sum" };
}

export function isUnit(type: AlgebraicTypeType): boolean {
  return type.tag === "Product" && type.value.elements.length === 0;
}

/** The type that a reference stands for. */
export function resolve(ref: number, typespace: TypespaceType | undefined): AlgebraicTypeType {
  const type = typespace?.types[ref];
  if (type === undefined) {
    throw new TypeError(
      typespace === undefined
        ? "cannot use a type with references without its typespace [LC0803]"
        : `Type reference &${ref} out of bounds [LC0803]`,
    );
  }
  return type;
}
