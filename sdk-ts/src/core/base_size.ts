// The estimated size of a value.

import type { AlgebraicTypeType, TypespaceType } from "./type_tree";

/** Bytes of a length or a tag. */
const HEAD = 4;

/**
 * An estimate of the bytes of a value in BSATN, by its type alone: an array has one element, a sum its smallest variant. A type
 * inside of itself counts nothing.
 */
export function bsatnBaseSize(typespace: TypespaceType, ty: AlgebraicTypeType): number {
  const entered = new Set<number>();
  const sizeOf = (type: AlgebraicTypeType): number => {
    switch (type.tag) {
      case "Ref": {
        const target = typespace.types[type.value];
        if (target === undefined || entered.has(type.value)) return 0;
        entered.add(type.value);
        const size = sizeOf(target);
        entered.delete(type.value);
        return size;
      }
      case "Product":
        return type.value.elements.reduce((sum, { algebraicType }) => sum + sizeOf(algebraicType), 0);
      case "Sum": {
        const sizes = type.value.variants.map(({ algebraicType }) => sizeOf(algebraicType));
        return HEAD + (sizes.length === 0 ? 0 : Math.min(...sizes));
      }
      case "Array":
        return HEAD + HEAD * sizeOf(type.value);
      case "Bool":
        return 1;
      case "String":
        return HEAD + HEAD;
      default:
        // A number has its bits in its name.
        return Number(type.tag.slice(1)) / 8;
    }
  };
  return sizeOf(ty);
}
