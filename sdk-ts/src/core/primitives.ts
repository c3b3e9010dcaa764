// The types whose values are not made of others: what differs from one to the next is said here. Classes and methods that bear
// their names are in binary_reader.ts, binary_writer.ts, type_builders.ts and column_builder_names.ts.

export interface NumberType {
  readonly bytes: number;
  /** What `DataView` calls such a number, if it can read and write one. */
  readonly accessor?: string;
}

/** The numbers, in the order of their tags (spec 01 §1.1.1). What is wider than four bytes and no float is a bigint. */
export const NUMBERS = {
  I8: { bytes: 1, accessor: "Int8" },
  U8: { bytes: 1, accessor: "Uint8" },
  I16: { bytes: 2, accessor: "Int16" },
  U16: { bytes: 2, accessor: "Uint16" },
  I32: { bytes: 4, accessor: "Int32" },
  U32: { bytes: 4, accessor: "Uint32" },
  I64: { bytes: 8, accessor: "BigInt64" },
  U64: { bytes: 8, accessor: "BigUint64" },
  I128: { bytes: 16 },
  U128: { bytes: 16 },
  I256: { bytes: 32 },
  U256: { bytes: 32 },
  F32: { bytes: 4, accessor: "Float32" },
  F64: { bytes: 8, accessor: "Float64" },
} satisfies Record<string, NumberType>;

/** The tag of a primitive type. */
export type PrimitiveTag = "String" | "Bool" | keyof typeof NUMBERS;

/** The tags of all primitive types, in their order. */
export function primitiveTags(): PrimitiveTag[] {
  return ["String", "Bool", ...(Object.keys(NUMBERS) as PrimitiveTag[])];
}

/** What is known of a number type; undefined if the tag is that of another type. */
export function numberType(tag: string): NumberType | undefined {
  return (NUMBERS as Record<string, NumberType>)[tag];
}
