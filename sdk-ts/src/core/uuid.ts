import { badValue } from "./errors";
import { u128ToHexString, u128ToUint8Array, uint8ArrayToU128 } from "./hex";
import type { Timestamp } from "./timestamp";

/** The algebraic type of `Uuid`. */
export type UuidAlgebraicType = {
  tag: "Product";
  value: { elements: [{ name: "__uuid__"; algebraicType: { tag: "U128" } }] };
};

/** The versions that can be made or told. */
export type UuidVersion = "Nil" | "V4" | "V7" | "Max";

const ALGEBRAIC_TYPE: UuidAlgebraicType = {
  tag: "Product",
  value: { elements: [{ name: "__uuid__", algebraicType: { tag: "U128" } }] },
};

const LARGEST = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_ffffn;
const COUNTER_MASK = 0x7fff_ffff;

/** A UUID: the 128-bit number that its sixteen bytes are, read from the first on (spec 01 §1.10). */
export class Uuid {
  __uuid__: bigint;

  static readonly MAX_UUID_BIGINT = LARGEST;
  /** All bits zero. */
  static readonly NIL: Uuid = /* @__PURE__ */ new Uuid(0n);
  /** All bits one. */
  static readonly MAX: Uuid = /* @__PURE__ */ new Uuid(LARGEST);

  constructor(u: bigint) {
    if (u < 0n || u > LARGEST) throw badValue("Invalid UUID: it must be a number of 128 bits");
    this.__uuid__ = u;
  }

  static getAlgebraicType(): UuidAlgebraicType {
    return ALGEBRAIC_TYPE;
  }

  /** Version 4 from sixteen random bytes. */
  static fromRandomBytesV4(bytes: Uint8Array): Uuid {
    if (bytes.length !== 16) throw badValue(`UUID v4 requires 16 bytes, got ${bytes.length}`);
    const result = Uint8Array.from(bytes);
    result[6] = (result[6]! & 0x0f) | 0x40;
    result[8] = (result[8]! & 0x3f) | 0x80;
    return new Uuid(uint8ArrayToU128(result.reverse()));
  }

  /** Version 7 from a counter of 31 bits, which is increased, a time, and four random bytes. */
  static fromCounterV7(counter: { value: number }, now: Timestamp, randomBytes: Uint8Array): Uuid {
    if (randomBytes.length !== 4)
      throw badValue(`UUID v7 requires 4 random bytes, got ${randomBytes.length}`);
    if (counter.value < 0) throw badValue("UUID v7: the counter must not be negative");
    const millis = now.toMillis();
    if (now.__timestamp_micros_since_unix_epoch__ < 0n) {
      throw badValue("UUID v7: the time must not be before 1970");
    }
    const count = counter.value & COUNTER_MASK;
    counter.value = (count + 1) & COUNTER_MASK;

    const random = new DataView(randomBytes.buffer, randomBytes.byteOffset).getUint32(0);
    // From the last byte on: four random ones, three and one of the counter around that of the variant, that of the version, six of
    // the time.
    return new Uuid(
      BigInt(random & 0x7fff_ffff) |
        (BigInt(count & 0x7f_ffff) << 33n) |
        (0x80n << 56n) |
        (BigInt(count >> 23) << 64n) |
        (0x70n << 72n) |
        (BigInt.asUintN(48, millis) << 80n),
    );
  }

  /** From 32 hexadecimal digits, hyphens allowed. */
  static parse(s: string): Uuid {
    const digits = s.replace(/-/g, "");
    if (!/^[0-9a-fA-F]{32}$/.test(digits)) throw badValue(`Invalid hex UUID: "${s}"`);
    return new Uuid(BigInt(`0x${digits}`));
  }

  /** 32 hexadecimal digits. */
  toHexString(): string {
    return u128ToHexString(this.__uuid__);
  }

  /** The form with hyphens. */
  toString(): string {
    return this.toHexString().replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }

  asBigInt(): bigint {
    return this.__uuid__;
  }

  /** Sixteen bytes in the order of the text. */
  toBytes(): Uint8Array {
    return u128ToUint8Array(this.__uuid__).reverse();
  }

  getVersion(): UuidVersion {
    if (this.__uuid__ === 0n) return "Nil";
    if (this.__uuid__ === LARGEST) return "Max";
    const version = Number((this.__uuid__ >> 76n) & 0xfn);
    if (version === 4) return "V4";
    if (version === 7) return "V7";
    throw badValue(`Unsupported UUID version: ${version}`);
  }

  /** The counter of a version 7 UUID. */
  getCounter(): number {
    const bytes = this.toBytes();
    return (bytes[7]! << 23) | (bytes[9]! << 15) | (bytes[10]! << 7) | (bytes[11]! >> 1);
  }

  compareTo(other: Uuid): number {
    return this.__uuid__ < other.__uuid__ ? -1 : this.__uuid__ > other.__uuid__ ? 1 : 0;
  }
}
