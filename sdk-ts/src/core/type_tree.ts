// Types as data: what stands in a module definition, and what values are read and written by.

export type Ref = { tag: "Ref"; value: number };
export type Sum = { tag: "Sum"; value: SumTypeType };
export type Product = { tag: "Product"; value: ProductTypeType };
export type Array = { tag: "Array"; value: AlgebraicTypeType };
export type String = { tag: "String" };
export type Bool = { tag: "Bool" };
export type I8 = { tag: "I8" };
export type U8 = { tag: "U8" };
export type I16 = { tag: "I16" };
export type U16 = { tag: "U16" };
export type I32 = { tag: "I32" };
export type U32 = { tag: "U32" };
export type I64 = { tag: "I64" };
export type U64 = { tag: "U64" };
export type I128 = { tag: "I128" };
export type U128 = { tag: "U128" };
export type I256 = { tag: "I256" };
export type U256 = { tag: "U256" };
export type F32 = { tag: "F32" };
export type F64 = { tag: "F64" };

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
  | String
  | Bool
  | I8
  | U8
  | I16
  | U16
  | I32
  | U32
  | I64
  | U64
  | I128
  | U128
  | I256
  | U256
  | F32
  | F64;
