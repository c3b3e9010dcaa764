// Strings of columns are short and mostly ASCII: for these, going through TextEncoder and TextDecoder costs more than the
// work itself, so both directions try ASCII first. A Lightcone host has functions without the detour (docs/js-abi.md).

/** Functions of a host. */
export interface NativeText {
  /** The string in `buffer[start..end]`; invalid sequences become U+FFFD. */
  text_read(buffer: ArrayBufferLike, start: number, end: number): string;
  /** Writes UTF-8 and returns its size; negative: so many bytes do not fit. */
  text_write(text: string, buffer: ArrayBufferLike, start: number): number;
}

let native: NativeText | undefined;
/** Up to these lengths, script is at least as fast as what is used for longer strings. */
let shortRead = 24;
let shortWrite = 32;

export function preferNativeText(functions: NativeText): void {
  native = functions;
  shortRead = shortWrite = 8;
}

/** For engines that compile script, as those of clients do: an array per string costs more than its characters. */
export function preferCompiledScript(): void {
  shortWrite = 256;
}

let decoder: TextDecoder | undefined;
let encoder: TextEncoder | undefined;

function makeDecoder(): TextDecoder {
  try {
    // Browsers drop a leading byte order mark unless told otherwise; a column's value must keep it.
    return new TextDecoder("utf-8", { ignoreBOM: true });
  } catch {
    // A module host refuses the option, and keeps the mark anyway.
    return new TextDecoder("utf-8");
  }
}

/** Lists of each length in which the codes of short strings are put together. */
const lists: number[][] = [];

function codesOf(length: number): number[] {
  return (lists[length] ??= new Array<number>(length).fill(0));
}

/** The text in `bytes[start..end]`; invalid sequences become U+FFFD. */
export function decodeUtf8(bytes: Uint8Array, start: number, end: number): string {
  const length = end - start;
  if (length <= shortRead) {
    // One call makes the string: put together letter by letter, it would be a tree that takes several times the memory.
    const codes = codesOf(length);
    let i = 0;
    for (; i < length; i++) {
      const byte = bytes[start + i]!;
      if (byte > 0x7f) break;
      codes[i] = byte;
    }
    if (i === length) return String.fromCharCode.apply(null, codes);
  }
  if (native) return native.text_read(bytes.buffer, bytes.byteOffset + start, bytes.byteOffset + end);
  decoder ??= makeDecoder();
  return decoder.decode(bytes.subarray(start, end));
}

/** UTF-8 of `text`, in an array of its own; lone surrogates become U+FFFD. */
export function encodeUtf8(text: string): Uint8Array {
  encoder ??= new TextEncoder();
  return encoder.encode(text);
}

/** Writes `text` at `at` if that is quickly done and there is room; returns its size, or -1 if it did not. */
export function writeQuickly(bytes: Uint8Array, at: number, text: string): number {
  const length = text.length;
  if (at + length > bytes.length) return -1;
  if (length > shortWrite) {
    const size = native ? native.text_write(text, bytes.buffer, bytes.byteOffset + at) : -1;
    return size < 0 || at + size > bytes.length ? -1 : size;
  }
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return -1;
    bytes[at + i] = code;
  }
  return length;
}
