/**
 * A whole number that may have gone through JSON: a bigint, an integer, or decimal text.
 * Anything else is refused, since `BigInt()` alone takes `true`, `[42]` and `""` for numbers.
 */
export function coerceToBigInt(value: unknown, what: string): bigint {
  switch (typeof value) {
    case "bigint":
      return value;
    case "number":
      return BigInt(value);
    case "string":
      if (/^[+-]?[0-9]+$/.test(value.trim())) return BigInt(value.trim());
  }
  const got = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  throw new TypeError(
    `Cannot convert ${got} to ${what}: expected bigint, integer number, or decimal string [LC0803]`,
  );
}
