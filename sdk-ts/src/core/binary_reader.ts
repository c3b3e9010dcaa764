import { tooShort } from "./errors";
import { decodeUtf8 } from "./utf8";

/**
 * Reads BSATN values one after the other (spec 01 §1.3).
 *
 * `view` covers exactly the input, and `offset` counts from its start; generated decoders use both directly.
 */
export class BinaryReader {
  view: DataView;
  offset: number;
  #bytes: Uint8Array | undefined;

  constructor(input: Uint8Array | DataView) {
    this.view =
      input instanceof DataView ? input : new DataView(input.buffer, input.byteOffset, input.byteLength);
    this.offset = 0;
  }

  /** Starts over with other input. */
  reset(input: Uint8Array | DataView): void {
    this.view =
      input instanceof DataView ? input : new DataView(input.buffer, input.byteOffset, input.byteLength);
    this.#bytes = undefined;
    this.offset = 0;
  }

  /** Starts over with a view that there is already, and an array of the same bytes. */
  attach(view: DataView, bytes: Uint8Array): void {
    this.view = view;
    this.#bytes = bytes;
    this.offset = 0;
  }

  /** The same bytes as `view`; made when first needed, which reading numbers alone does not. */
  get bytes(): Uint8Array {
    this.#bytes ??= new Uint8Array(this.view.buffer, this.view.byteOffset, this.view.byteLength);
    return this.#bytes;
  }

  /** How many bytes are left. */
  get remaining(): number {
    return this.view.byteLength - this.offset;
  }

  /** A length, and a copy of that many bytes. */
  readUInt8Array(): Uint8Array {
    return this.readBytes(this.readU32()).slice();
  }

  readBool(): boolean {
    return this.view.getUint8(this.offset++) !== 0;
  }

  readByte(): number {
    return this.view.getUint8(this.offset++);
  }

  /** The next `length` bytes, as a view into the input. */
  readBytes(length: number): Uint8Array {
    const start = this.offset;
    if (length > this.view.byteLength - start) {
      throw tooShort(length, start, this.view.byteLength - start);
    }
    this.offset = start + length;
    return this.bytes.subarray(start, start + length);
  }

  readI8(): number {
    return this.view.getInt8(this.offset++);
  }

  readU8(): number {
    return this.view.getUint8(this.offset++);
  }

  readI16(): number {
    const value = this.view.getInt16(this.offset, true);
    this.offset += 2;
    return value;
  }

  readU16(): number {
    const value = this.view.getUint16(this.offset, true);
    this.offset += 2;
    return value;
  }

  readI32(): number {
    const value = this.view.getInt32(this.offset, true);
    this.offset += 4;
    return value;
  }

  readU32(): number {
    const value = this.view.getUint32(this.offset, true);
    this.offset += 4;
    return value;
  }

  readI64(): bigint {
    const value = this.view.getBigInt64(this.offset, true);
    this.offset += 8;
    return value;
  }

  readU64(): bigint {
    const value = this.view.getBigUint64(this.offset, true);
    this.offset += 8;
    return value;
  }

  readU128(): bigint {
    const low = this.view.getBigUint64(this.offset, true);
    const high = this.view.getBigUint64(this.offset + 8, true);
    this.offset += 16;
    return high === 0n ? low : (high << 64n) | low;
  }

  readI128(): bigint {
    const low = this.view.getBigUint64(this.offset, true);
    const high = this.view.getBigInt64(this.offset + 8, true);
    this.offset += 16;
    return high === 0n ? low : (high << 64n) | low;
  }

  readU256(): bigint {
    const low = this.readU128();
    const high = this.readU128();
    return high === 0n ? low : (high << 128n) | low;
  }

  readI256(): bigint {
    const low = this.readU128();
    const high = this.readI128();
    return high === 0n ? low : (high << 128n) | low;
  }

  readF32(): number {
    const value = this.view.getFloat32(this.offset, true);
    this.offset += 4;
    return value;
  }

  readF64(): number {
    const value = this.view.getFloat64(this.offset, true);
    this.offset += 8;
    return value;
  }

  readString(): string {
    const start = this.offset + 4;
    const length = this.view.getUint32(this.offset, true);
    const end = start + length;
    if (end > this.view.byteLength) {
      throw tooShort(length, start, this.view.byteLength - start);
    }
    this.offset = end;
    return decodeUtf8(this.bytes, start, end);
  }
}
