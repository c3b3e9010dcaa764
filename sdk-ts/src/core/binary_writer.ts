// BSATN values, written one after the other (01 §1.3).

import { encodeUtf8, writeQuickly } from "./utf8";

const LOW_64_BITS = 0xffff_ffff_ffff_ffffn;

/** Bytes of base64 that are turned into text at once. */
const BASE64_CHUNK_BYTES = 0x8000;

/** A buffer that grows; growing replaces `buffer`, `view` and `bytes`. */
export class ResizableBuffer {
  /** The same bytes as `view`. */
  bytes: Uint8Array<ArrayBuffer>;
  buffer: ArrayBuffer;
  view: DataView;

  constructor(init: number | ArrayBuffer) {
    // A length and a buffer make an array alike.
    const bytes = new Uint8Array(init as ArrayBuffer);
    this.bytes = bytes;
    this.buffer = bytes.buffer;
    this.view = new DataView(bytes.buffer);
  }

  get capacity(): number {
    return this.bytes.length;
  }

  /** Makes the buffer at least `newSize` bytes long; what is in it stays. */
  grow(newSize: number): void {
    if (newSize <= this.capacity) return;
    const bytes = new Uint8Array(newSize);
    bytes.set(this.bytes);
    this.bytes = bytes;
    this.buffer = bytes.buffer;
    this.view = new DataView(bytes.buffer);
  }
}

/** Makes room for the next `size` bytes and moves over them; returns where they begin. */
function claim(writer: BinaryWriter, size: number): number {
  writer.expandBuffer(size);
  const start = writer.offset;
  writer.offset = start + size;
  return start;
}

/** Generated encoders reserve room with `expandBuffer` and write through `buffer.view` at `offset` themselves. */
export class BinaryWriter {
  offset = 0;
  buffer: ResizableBuffer;

  constructor(init: number | ResizableBuffer) {
    this.buffer = init instanceof ResizableBuffer ? init : new ResizableBuffer(init);
  }

  /** Starts over in the same buffer. */
  clear(): void {
    this.offset = 0;
  }

  /** Starts over in another buffer. */
  reset(buffer: ResizableBuffer): void {
    this.buffer = buffer;
    this.clear();
  }

  /** Makes sure that `additionalCapacity` more bytes fit. */
  expandBuffer(additionalCapacity: number): void {
    const needed = this.offset + additionalCapacity;
    const { capacity } = this.buffer;
    if (needed > capacity) this.buffer.grow(Math.max(needed, capacity * 2, 64));
  }

  get view(): DataView {
    return this.buffer.view;
  }

  /** The written bytes, as a view into the buffer. */
  getBuffer(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.buffer.buffer, 0, this.offset);
  }

  toBase64(): string {
    const written = this.getBuffer();
    let binary = "";
    for (let from = 0; from < written.length; from += BASE64_CHUNK_BYTES) {
      binary += String.fromCharCode(...written.subarray(from, from + BASE64_CHUNK_BYTES));
    }
    return btoa(binary);
  }

  /** The bytes of `value` as they are. */
  writeBytes(value: Uint8Array): void {
    const at = claim(this, value.length);
    this.buffer.bytes.set(value, at);
  }

  /** The length of `value`, then its bytes. */
  writeUInt8Array(value: Uint8Array): void {
    const at = claim(this, 4 + value.length);
    this.buffer.view.setUint32(at, value.length, true);
    this.buffer.bytes.set(value, at + 4);
  }

  writeString(value: string): void {
    if (typeof value !== "string") value = value === undefined ? "" : String(value);
    this.expandBuffer(4 + value.length);
    const size = writeQuickly(this.buffer.bytes, this.offset + 4, value);
    if (size >= 0) {
      this.buffer.view.setUint32(this.offset, size, true);
      this.offset += 4 + size;
    } else {
      this.writeUInt8Array(encodeUtf8(value));
    }
  }

  writeBool(value: boolean): void {
    this.writeU8(value ? 1 : 0);
  }

  writeByte(value: number): void {
    this.writeU8(value);
  }

  writeU8(value: number): void {
    const at = claim(this, 1);
    this.buffer.view.setUint8(at, value);
  }

  writeI8(value: number): void {
    const at = claim(this, 1);
    this.buffer.view.setInt8(at, value);
  }

  writeU16(value: number): void {
    const at = claim(this, 2);
    this.buffer.view.setUint16(at, value, true);
  }

  writeI16(value: number): void {
    const at = claim(this, 2);
    this.buffer.view.setInt16(at, value, true);
  }

  writeU32(value: number): void {
    const at = claim(this, 4);
    this.buffer.view.setUint32(at, value, true);
  }

  writeI32(value: number): void {
    const at = claim(this, 4);
    this.buffer.view.setInt32(at, value, true);
  }

  writeU64(value: bigint): void {
    const at = claim(this, 8);
    this.buffer.view.setBigUint64(at, value, true);
  }

  writeI64(value: bigint): void {
    const at = claim(this, 8);
    this.buffer.view.setBigInt64(at, value, true);
  }

  writeF32(value: number): void {
    const at = claim(this, 4);
    this.buffer.view.setFloat32(at, value, true);
  }

  writeF64(value: number): void {
    const at = claim(this, 8);
    this.buffer.view.setFloat64(at, value, true);
  }

  writeU128(value: bigint): void {
    const at = claim(this, 16);
    const { view } = this.buffer;
    view.setBigUint64(at, value & LOW_64_BITS, true);
    view.setBigUint64(at + 8, value >> 64n, true);
  }

  writeI128(value: bigint): void {
    this.writeU128(value);
  }

  writeU256(value: bigint): void {
    const at = claim(this, 32);
    const { view } = this.buffer;
    for (let byte = 0; byte < 24; byte += 8) {
      view.setBigUint64(at + byte, value & LOW_64_BITS, true);
      value >>= 64n;
    }
    view.setBigUint64(at + 24, value, true);
  }

  writeI256(value: bigint): void {
    this.writeU256(value);
  }
}
