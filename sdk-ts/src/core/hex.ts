import { badValue } from "./errors";

// Identities and connection ids are written in hexadecimal with the most significant byte first, and stored with the
// least significant byte first (spec 01 §1.8.1): the functions here go between the two.

/** `array` in hexadecimal, last byte first. */
export function uint8ArrayToHexString(array: Uint8Array): string {
  let text = "";
  for (let i = array.length - 1; i >= 0; i--) text += array[i]!.toString(16).padStart(2, "0");
  return text;
}

/** The number that hexadecimal digits are, which have to be those of so many bytes. */
function digitsToBigInt(digits: string, bytes: number): bigint {
  if (digits.length !== 2 * bytes) {
    throw badValue(`${bytes} bytes were expected, got ${digits.length / 2}`);
  }
  return BigInt(`0x${digits}`);
}

/** The digits of hexadecimal text. `0x` may stand before the text. */
function digitsOf(str: string): string {
  const digits = str.startsWith("0x") ? str.slice(2) : str;
  if (!/^(?:[0-9a-fA-F]{2})*$/.test(digits)) {
    throw badValue(`"${str}" is not hexadecimal text with two digits for each byte`);
  }
  return digits;
}

function bigIntToLittleEndian(value: bigint, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < length; at += 8) {
    view.setBigUint64(at, BigInt.asUintN(64, value), true);
    value >>= 64n;
  }
  return bytes;
}

/** The number in 16 bytes, the lowest first. */
export function uint8ArrayToU128(array: Uint8Array): bigint {
  return digitsToBigInt(uint8ArrayToHexString(array), 16);
}

/** The number in 32 bytes, the lowest first. */
export function uint8ArrayToU256(array: Uint8Array): bigint {
  return digitsToBigInt(uint8ArrayToHexString(array), 32);
}

/** The bytes of hexadecimal text, last digits first. `0x` may stand before the text. */
export function hexStringToUint8Array(str: string): Uint8Array {
  const digits = digitsOf(str);
  const bytes = new Uint8Array(digits.length / 2);
  for (let i = 0; i < bytes.length; i++) {
    const from = digits.length - 2 * (i + 1);
    bytes[i] = Number.parseInt(digits.slice(from, from + 2), 16);
  }
  return bytes;
}

/** The number with these 32 hexadecimal digits. */
export function hexStringToU128(str: string): bigint {
  return digitsToBigInt(digitsOf(str), 16);
}

/** The number with these 64 hexadecimal digits. */
export function hexStringToU256(str: string): bigint {
  return digitsToBigInt(digitsOf(str), 32);
}

/** The 16 bytes of a number, the lowest first. */
export function u128ToUint8Array(data: bigint): Uint8Array {
  return bigIntToLittleEndian(data, 16);
}

/** The 32 hexadecimal digits of a number. */
export function u128ToHexString(data: bigint): string {
  return BigInt.asUintN(128, data).toString(16).padStart(32, "0");
}

/** The 32 bytes of a number, the lowest first. */
export function u256ToUint8Array(data: bigint): Uint8Array {
  return bigIntToLittleEndian(data, 32);
}

/** The 64 hexadecimal digits of a number. */
export function u256ToHexString(data: bigint): string {
  return BigInt.asUintN(256, data).toString(16).padStart(64, "0");
}
