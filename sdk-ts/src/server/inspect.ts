const MAX_DEPTH = 5;
const IDENTIFIER = /^(?:[A-Za-z_$][\w$]*|\d+)$/;

function quoted(text: string): string {
  const escaped = text
    .replace(/\\/g, "\\\\")
    .replace(/'/g, "\\'")
    .replace(/\n/g, "\\n")
    .replace(/\r/g, "\\r")
    .replace(/\t/g, "\\t")
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is to be escaped
    .replace(/[\x00-\x1f\x7f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
  return `'${escaped}'`;
}

function keyText(key: string | symbol): string {
  if (typeof key === "symbol") return `[${String(key)}]`;
  return IDENTIFIER.test(key) ? key : quoted(key);
}

/** A value as text for the log: strings in quotes, objects with their fields, five levels deep. */
export function inspect(value: unknown, depth = 0, around: readonly unknown[] = []): string {
  switch (typeof value) {
    case "string":
      return quoted(value);
    case "bigint":
      return `${value}n`;
    case "number":
      return Object.is(value, -0) ? "-0" : String(value);
    case "symbol":
      return String(value);
    case "function":
      return `[Function${value.name ? `: ${value.name}` : " (anonymous)"}]`;
    case "object":
      return value === null ? "null" : inspectObject(value, depth, around);
    default:
      return String(value);
  }
}

function inspectObject(object: object, depth: number, around: readonly unknown[]): string {
  if (around.includes(object)) return "[Circular]";
  if (depth >= MAX_DEPTH) return Array.isArray(object) ? "[Array]" : "[Object]";
  const inner = [...around, object];
  const show = (value: unknown) => inspect(value, depth + 1, inner);

  if (Array.isArray(object)) {
    if (object.length === 0) return "[]";
    // An index that holds nothing stays empty.
    const items = Array.from(object, (item, i) => (i in object ? show(item) : ""));
    return `[ ${items.join(", ")} ]`;
  }
  if (object instanceof Map) {
    const items = Array.from(object, ([key, item]) => `${show(key)} => ${show(item)}`);
    return `Map (${object.size}) {${items.join(", ")}}`;
  }
  if (object instanceof Set) {
    return `Set (${object.size}) {${Array.from(object, show).join(", ")}}`;
  }
  if (object instanceof WeakMap) return "WeakMap { ? }";
  if (object instanceof WeakSet) return "WeakSet { ? }";
  if (object instanceof Date || object instanceof RegExp) return String(object);
  if (object instanceof Number || object instanceof Boolean || object instanceof String) {
    return `Object(${inspect(object.valueOf())})`;
  }

  const keys: (string | symbol)[] = Object.keys(object);
  keys.push(
    ...Object.getOwnPropertySymbols(object).filter((k) =>
      Object.prototype.propertyIsEnumerable.call(object, k),
    ),
  );
  const fields = keys.map((key) => `${keyText(key)}: ${show(Reflect.get(object, key))}`);

  if (object instanceof Error) {
    return fields.length === 0 ? `[${String(object)}]` : `{ [${String(object)}] ${fields.join(", ")} }`;
  }
  const prototype = Object.getPrototypeOf(object);
  const tag = Reflect.get(object, Symbol.toStringTag);
  const name =
    prototype === null
      ? "[Object: null prototype]"
      : prototype === Object.prototype || prototype.constructor?.name === "Object"
        ? ""
        : (prototype.constructor?.name ?? "");
  const label = [name, typeof tag === "string" && tag !== "" ? `[${tag}]` : ""].filter(Boolean).join(" ");
  const content = fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
  return label === "" ? content : `${label} ${content}`;
}
