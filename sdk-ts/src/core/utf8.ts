// Strings of columns are short and mostly ASCII: for these, going through TextEncoder and TextDecoder costs more than the
// work itself, so both directions try ASCII first.

const SHORT_LENGTH = 32;

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

/** The text in `bytes[start..end]`; invalid sequences become U+FFFD. */
export function decodeUtf8(bytes: Uint8Array, start: number, end: number): string {
  if (end - start <= SHORT_LENGTH) {
    let text = "";
    let at = start;
    for (; at < end; at++) {
      const byte = bytes[at]!;
      if (byte > 0x7f) break;
      text += String.fromCharCode(byte);
    }
    if (at === end) return text;
  }
  decoder ??= makeDecoder();
  return decoder.decode(bytes.subarray(start, end));
}

/** UTF-8 of `text`, in an array of its own; lone surrogates become U+FFFD. */
export function encodeUtf8(text: string): Uint8Array {
  encoder ??= new TextEncoder();
  return encoder.encode(text);
}

/** Writes `text` at `at` if it is short ASCII and there is room; returns whether it did. */
export function writeShortAscii(bytes: Uint8Array, at: number, text: string): boolean {
  const length = text.length;
  if (length > SHORT_LENGTH || at + length > bytes.length) return false;
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return false;
    bytes[at + i] = code;
  }
  return true;
}
