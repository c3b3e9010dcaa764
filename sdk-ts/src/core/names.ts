import type { CamelCase, PascalCase, SnakeCase } from "./type_util";

/** `some_name-x` as `someNameX`. */
export function toCamelCase<T extends string>(s: T): CamelCase<T> {
  const joined = s.replace(/[-_]+([a-zA-Z0-9])/g, (_, letter: string) => letter.toUpperCase());
  return (joined.charAt(0).toLowerCase() + joined.slice(1)) as CamelCase<T>;
}

/** `some_name-x` as `SomeNameX`. */
export function toPascalCase<T extends string>(s: T): PascalCase<T> {
  const camel: string = toCamelCase(s);
  return (camel.charAt(0).toUpperCase() + camel.slice(1)) as PascalCase<T>;
}

/** `someName` as `some_name`. */
export function toSnakeCase<T extends string>(str: T): SnakeCase<T> {
  const separated = str.replace(/[-\s]+|(?=[A-Z])/g, "_");
  return (separated.startsWith("_") ? separated.slice(1) : separated).toLowerCase() as SnakeCase<T>;
}
