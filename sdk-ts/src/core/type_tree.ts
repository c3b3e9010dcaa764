// Types as data: what stands in a module definition, and what values are read and written by.

import type { PrimitiveTag } from "./primitives";

export type Ref = { tag: "Ref"; value: number };
export type Sum = { tag: "Sum"; value: SumTypeType };
export type Product = { tag: "Product"; value: ProductTypeType };
export type Array = { tag: "Array"; value: AlgebraicTypeType };

/** A field of a product. */
export type ProductTypeElement = { name: string | undefined; algebraicType: AlgebraicTypeType };
/** An alternative of a sum. */
export type SumTypeVariant = { name: string | undefined; algebraicType: AlgebraicTypeType };
/** The content of a product type. */
export type ProductTypeType = { elements: ProductTypeElement[] };
/** The content of a sum type. */
export type SumTypeType = { variants: SumTypeVariant[] };
/** The types that `Ref` types point to. */
export type TypespaceType = { types: AlgebraicTypeType[] };

/** One of the 20 type constructors (spec 01 §1.1.1). */
export type AlgebraicTypeType =
  | Ref
  | Sum
  | Product
  | Array
  | { [Tag in PrimitiveTag]: { tag: Tag } }[PrimitiveTag];
