import { badValue } from "../core/errors";

/** A value for headers. */
export type HeadersInit = [string, string][] | Record<string, string> | Headers;

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function normalName(name: string): string {
  const text = String(name);
  if (!TOKEN.test(text)) throw badValue(`"${text}" is not the name of an HTTP header`);
  return text.toLowerCase();
}

/** Header fields of a request or response; names in any case, several values for a name joined by a comma. */
export class Headers implements Iterable<[string, string]> {
  readonly #values = new Map<string, string[]>();

  constructor(init?: HeadersInit) {
    if (init === undefined || init === null) return;
    const pairs: Iterable<[string, string]> =
      init instanceof Headers ? init.raw() : Symbol.iterator in init ? init : Object.entries(init);
    for (const [name, value] of pairs) this.append(name, value);
  }

  append(name: string, value: string): void {
    const key = normalName(name);
    const values = this.#values.get(key);
    const text = String(value).trim();
    if (values) values.push(text);
    else this.#values.set(key, [text]);
  }

  delete(name: string): void {
    this.#values.delete(normalName(name));
  }

  get(name: string): string | null {
    return this.#values.get(normalName(name))?.join(", ") ?? null;
  }

  getSetCookie(): string[] {
    return [...(this.#values.get("set-cookie") ?? [])];
  }

  has(name: string): boolean {
    return this.#values.has(normalName(name));
  }

  set(name: string, value: string): void {
    this.#values.set(normalName(name), [String(value).trim()]);
  }

  forEach(callback: (value: string, name: string, headers: Headers) => void, thisArg?: unknown): void {
    for (const [name, value] of this) callback.call(thisArg, value, name, this);
  }

  *entries(): IterableIterator<[string, string]> {
    for (const name of [...this.#values.keys()].sort()) {
      if (name === "set-cookie") for (const value of this.getSetCookie()) yield [name, value];
      else yield [name, this.get(name)!];
    }
  }

  *keys(): IterableIterator<string> {
    for (const [name] of this.entries()) yield name;
  }

  *values(): IterableIterator<string> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): IterableIterator<[string, string]> {
    return this.entries();
  }

  /** Every value on its own, in the order in which names were first added. */
  raw(): [string, string][] {
    return [...this.#values].flatMap(([name, values]) =>
      values.map((value): [string, string] => [name, value]),
    );
  }
}
