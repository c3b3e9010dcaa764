// Where types end. The compiler checks modules and applications against their own tables; what serves all of them takes
// values of every type, and says so with the names in here.

import type { BinaryReader } from "./binary_reader";
import type { BinaryWriter } from "./binary_writer";

export type AnySerializer = (writer: BinaryWriter, value: any) => void;
export type AnyDeserializer = (reader: BinaryReader) => any;

/** A function of a module or an application; its type was checked where it was written. */
export type AnyFunction = (...args: any[]) => any;

/** A row of any table: its fields have the types of the columns. */
export type AnyRow = Record<string, any>;

/** The value as what it is known to be: for what the compiler cannot find out, and for nothing that comes from outside. */
export function known<T>(value: unknown): T {
  return value as T;
}
