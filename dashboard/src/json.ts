// JSON with whole numbers of any size: those that a JavaScript number cannot hold become a bigint.

/** Deeper values are refused: a hostile answer must not exhaust the stack. */
const DEPTH_MAX = 500;
/** Sixteen digits in a row, somewhere: a number may be too large for `JSON.parse`. */
const LONG_NUMBER = /\d{16}/;

export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };

export function parseJson(text: string): Json {
  return LONG_NUMBER.test(text) ? new Parser(text).whole() : JSON.parse(text);
}

const WHITE = /[ \t\r\n]*/y;
const NUMBER = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\]|\\.)*"/y;
const WORD = /true|false|null/y;

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): Json {
    const value = this.#value(0);
    this.#skip();
    if (this.#at < this.#text.length) throw new SyntaxError(`more text at ${this.#at}`);
    return value;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #skip(): void {
    this.#match(WHITE);
  }

  #takes(char: string): boolean {
    this.#skip();
    if (this.#text[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  #expect(char: string): void {
    if (!this.#takes(char)) throw new SyntaxError(`${char} is missing at ${this.#at}`);
  }

  #string(): string {
    this.#skip();
    const found = this.#match(STRING);
    if (found === undefined) throw new SyntaxError(`no string at ${this.#at}`);
    return JSON.parse(found);
  }

  #value(depth: number): Json {
    if (depth > DEPTH_MAX) throw new SyntaxError("too deep");
    if (this.#takes("[")) return this.#array(depth);
    if (this.#takes("{")) return this.#object(depth);
    if (this.#text[this.#at] === '"') return this.#string();
    const word = this.#match(WORD);
    if (word !== undefined) return JSON.parse(word);
    const number = this.#match(NUMBER);
    if (number === undefined) throw new SyntaxError(`no value at ${this.#at}`);
    const value = Number(number);
    return /[.eE]/.test(number) || Number.isSafeInteger(value) ? value : BigInt(number);
  }

  #array(depth: number): Json[] {
    const values: Json[] = [];
    if (this.#takes("]")) return values;
    do values.push(this.#value(depth + 1));
    while (this.#takes(","));
    this.#expect("]");
    return values;
  }

  #object(depth: number): { [key: string]: Json } {
    // Names come from modules: none of them may mean the prototype.
    const fields: { [key: string]: Json } = Object.create(null);
    if (this.#takes("}")) return fields;
    do {
      const name = this.#string();
      this.#expect(":");
      fields[name] = this.#value(depth + 1);
    } while (this.#takes(","));
    this.#expect("}");
    return fields;
  }
}

/** The text of a value, with bigints as bare numbers. */
export function jsonText(value: Json, space = 0): string {
  const marked = JSON.stringify(
    value,
    (_, inner) => (typeof inner === "bigint" ? `\u0000${inner}\u0000` : inner),
    space,
  );
  return marked.replace(/"\\u0000(-?\d+)\\u0000"/g, "$1");
}

export const isObject = (value: unknown): value is { [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);
