import { encodeUtf8, writeQuickly } from "./utf8";

const LOW_64_BITS = 0xffff_ffff_ffff_ffffn;

/** A buffer that grows; growing replaces `buffer`, `view` and `bytes`. */
export class ResizableBuffer {
  buffer: ArrayBuffer;
  view: DataView;
  /** The same bytes as `view`. */
  bytes: Uint8Array;

  constructor(init: number | ArrayBuffer) {
    this.buffer = typeof init === "number" ? new ArrayBuffer(init) : init;
    this.view = new DataView(this.buffer);
    this.bytes = new Uint8Array(this.buffer);
  }

  get capacity(): number {
    return this.buffer.byteLength;
  }

  /** Makes the buffer at least `newSize` bytes long; what is in it stays. */
  grow(newSize: number): void {
    if (newSize <= this.buffer.byteLength) return;
    const bytes = new Uint8Array(newSize);
    bytes.set(this.bytes);
    this.buffer = bytes.buffer;
    this.bytes = bytes;
    this.view = new DataView(this.buffer);
  }
}

/**
 * Writes BSATN values one after the other (spec 01 §1.3).
 *
 * Generated encoders reserve room with `expandBuffer` and write through `buffer.view` at `offset` themselves.
 */
export class BinaryWriter {
  buffer: ResizableBuffer;
  offset: number;

  constructor(init: number | ResizableBuffer) {
    this.buffer = typeof init === "number" ? new ResizableBuffer(init) : init;
    this.offset = 0;
  }

  clear(): void {
    this.offset = 0;
  }

  reset(buffer: ResizableBuffer): void {
    this.buffer = buffer;
    this.offset = 0;
  }

  /** Makes sure that `additionalCapacity` more bytes fit. */
  expandBuffer(additionalCapacity: number): void {
    const needed = this.offset + additionalCapacity;
    const { capacity } = this.buffer;
    if (needed > capacity) this.buffer.grow(Math.max(needed, capacity * 2, 64));
  }

  toBase64(): string {
    const bytes = this.getBuffer();
    let text = "";
    for (let at = 0; at < bytes.length; at += 0x8000) {
      text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    }
    return btoa(text);
  }

  /** What was written, as a view into the buffer. */
  getBuffer(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.buffer.buffer, 0, this.offset);
  }

  get view(): DataView {
    return this.buffer.view;
  }

  /** The length of `value`, then its bytes. */
  writeUInt8Array(value: Uint8Array): void {
    const length = value.length;
    this.expandBuffer(4 + length);
    this.buffer.view.setUint32(this.offset, length, true);
    this.buffer.bytes.set(value, this.offset + 4);
    this.offset += 4 + length;
  }

  /** The bytes of `value` as they are. */
  writeBytes(value: Uint8Array): void {
    this.expandBuffer(value.length);
    this.buffer.bytes.set(value, this.offset);
    this.offset += value.length;
  }

  writeBool(value: boolean): void {
    this.expandBuffer(1);
    this.buffer.view.setUint8(this.offset, value ? 1 : 0);
    this.offset += 1;
  }

  writeByte(value: number): void {
    this.writeU8(value);
  }

  writeI8(value: number): void {
    this.expandBuffer(1);
    this.buffer.view.setInt8(this.offset, value);
    this.offset += 1;
  }

  writeU8(value: number): void {
    this.expandBuffer(1);
    this.buffer.view.setUint8(this.offset, value);
    this.offset += 1;
  }

  writeI16(value: number): void {
    this.expandBuffer(2);
    this.buffer.view.setInt16(this.offset, value, true);
    this.offset += 2;
  }

  writeU16(value: number): void {
    this.expandBuffer(2);
    this.buffer.view.setUint16(this.offset, value, true);
    this.offset += 2;
  }

  writeI32(value: number): void {
    this.expandBuffer(4);
    this.buffer.view.setInt32(this.offset, value, true);
    this.offset += 4;
  }

  writeU32(value: number): void {
    this.expandBuffer(4);
    this.buffer.view.setUint32(this.offset, value, true);
    this.offset += 4;
  }

  writeI64(value: bigint): void {
    this.expandBuffer(8);
    this.buffer.view.setBigInt64(this.offset, value, true);
    this.offset += 8;
  }

  writeU64(value: bigint): void {
    this.expandBuffer(8);
    this.buffer.view.setBigUint64(this.offset, value, true);
    this.offset += 8;
  }

  writeU128(value: bigint): void {
    this.expandBuffer(16);
    const { view } = this.buffer;
    view.setBigUint64(this.offset, value & LOW_64_BITS, true);
    view.setBigUint64(this.offset + 8, value >> 64n, true);
    this.offset += 16;
  }

  writeI128(value: bigint): void {
    this.writeU128(value);
  }

  writeU256(value: bigint): void {
    this.expandBuffer(32);
    const { view } = this.buffer;
    view.setBigUint64(this.offset, value & LOW_64_BITS, true);
    view.setBigUint64(this.offset + 8, (value >> 64n) & LOW_64_BITS, true);
    view.setBigUint64(this.offset + 16, (value >> 128n) & LOW_64_BITS, true);
    view.setBigUint64(this.offset + 24, value >> 192n, true);
    this.offset += 32;
  }

  writeI256(value: bigint): void {
    this.writeU256(value);
  }

  writeF32(value: number): void {
    this.expandBuffer(4);
    this.buffer.view.setFloat32(this.offset, value, true);
    this.offset += 4;
  }

  writeF64(value: number): void {
    this.expandBuffer(8);
    this.buffer.view.setFloat64(this.offset, value, true);
    this.offset += 8;
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
}
