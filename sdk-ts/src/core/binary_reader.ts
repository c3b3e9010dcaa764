// BSATN values, read one after the other (01 §1.3).

import { tooShort } from "./errors";
import { decodeUtf8 } from "./utf8";

function viewOf(input: Uint8Array | DataView): DataView {
  if (input instanceof DataView) return input;
  return new DataView(input.buffer, input.byteOffset, input.byteLength);
}

/** Moves over the next `size` bytes; returns where they begin. */
function pass(reader: BinaryReader, size: number): number {
  const start = reader.offset;
  reader.offset = start + size;
  return start;
}

/** As `pass`, for lengths from the input, which may say anything. */
function passChecked(reader: BinaryReader, size: number): number {
  if (size > reader.remaining) throw tooShort(size, reader.offset, reader.remaining);
  return pass(reader, size);
}

function joined(high: bigint, low: bigint, lowBits: bigint): bigint {
  // Most numbers are small.
  return high === 0n ? low : (high << lowBits) | low;
}

/** `view` covers exactly the input, and `offset` counts from its start; generated decoders use both directly. */
export class BinaryReader {
  offset = 0;
  view: DataView;
  #bytes: Uint8Array | undefined;

  constructor(input: Uint8Array | DataView) {
    this.view = viewOf(input);
  }

  /** Starts over with other input. */
  reset(input: Uint8Array | DataView): void {
    this.#bytes = undefined;
    this.view = viewOf(input);
    this.offset = 0;
  }

  /** Starts over with a view that there is already, and an array of the same bytes. */
  attach(view: DataView, bytes: Uint8Array): void {
    this.view = view;
    this.#bytes = bytes;
    this.offset = 0;
  }

  /** The bytes of `view`; made on demand, which reading numbers alone does not need. */
  get bytes(): Uint8Array {
    this.#bytes ??= new Uint8Array(this.view.buffer, this.view.byteOffset, this.view.byteLength);
    return this.#bytes;
  }

  /** The bytes that are left. */
  get remaining(): number {
    return this.view.byteLength - this.offset;
  }

  /** The next `length` bytes, as a view into the input. */
  readBytes(length: number): Uint8Array {
    const start = passChecked(this, length);
    return this.bytes.subarray(start, this.offset);
  }

  /** A length, and a copy of that many bytes. */
  readUInt8Array(): Uint8Array {
    return this.readBytes(this.readU32()).slice();
  }

  readString(): string {
    const length = this.readU32();
    const start = passChecked(this, length);
    return decodeUtf8(this.bytes, start, this.offset);
  }

  readBool(): boolean {
    return this.readU8() !== 0;
  }

  readByte(): number {
    return this.readU8();
  }

  readU8(): number {
    return this.view.getUint8(pass(this, 1));
  }

  readI8(): number {
    return this.view.getInt8(pass(this, 1));
  }

  readU16(): number {
    return this.view.getUint16(pass(this, 2), true);
  }

  readI16(): number {
    return this.view.getInt16(pass(this, 2), true);
  }

  readU32(): number {
    return this.view.getUint32(pass(this, 4), true);
  }

  readI32(): number {
    return this.view.getInt32(pass(this, 4), true);
  }

  readU64(): bigint {
    return this.view.getBigUint64(pass(this, 8), true);
  }

  readI64(): bigint {
    return this.view.getBigInt64(pass(this, 8), true);
  }

  readU128(): bigint {
    const low = this.readU64();
    return joined(this.readU64(), low, 64n);
  }

  readI128(): bigint {
    const low = this.readU64();
    return joined(this.readI64(), low, 64n);
  }

  readU256(): bigint {
    const low = this.readU128();
    return joined(this.readU128(), low, 128n);
  }

  readI256(): bigint {
    const low = this.readU128();
    return joined(this.readI128(), low, 128n);
  }

  readF32(): number {
    return this.view.getFloat32(pass(this, 4), true);
  }

  readF64(): number {
    return this.view.getFloat64(pass(this, 8), true);
  }
}
