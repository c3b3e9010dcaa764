// Small functions that npm package `spacetimedb` exports, for applications that use them.

import { isSameValue } from "./row_store";

/** Whether two values are equal, field by field. */
export function deepEqual(a: any, b: any): boolean {
  return isSameValue(a, b);
}

/** Whether an object has a property of its own. */
export const hasOwn = <K extends PropertyKey>(
  object: object,
  key: K,
): object is K extends PropertyKey ? { [k in K]: unknown } : never => Object.hasOwn(object, key);
