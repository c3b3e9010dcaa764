import { BinaryReader } from "./binary_reader";

/** A type whose values can be read from bytes. */
export interface ParseableType<T> {
  deserialize: (reader: BinaryReader) => T;
}

/** The value of type `ty` that `src` holds. */
export function parseValue<T>(ty: ParseableType<T>, src: Uint8Array): T {
  return ty.deserialize(new BinaryReader(src));
}
