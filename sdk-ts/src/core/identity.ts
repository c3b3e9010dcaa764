import { coerceToBigInt } from "./coerce";
import { hexStringToU256, u256ToHexString, u256ToUint8Array } from "./hex";

/** The algebraic type of `Identity`. */
export type IdentityAlgebraicType = {
  tag: "Product";
  value: { elements: [{ name: "__identity__"; algebraicType: { tag: "U256" } }] };
};

const ALGEBRAIC_TYPE: IdentityAlgebraicType = {
  tag: "Product",
  value: { elements: [{ name: "__identity__", algebraicType: { tag: "U256" } }] },
};

/** Identifies a user or a database: 256 bits, the same on every connection (spec 01 §1.8). */
export class Identity {
  __identity__: bigint;

  /** From 64 hexadecimal digits, with or without `0x`, or from a number. */
  constructor(data: string | bigint) {
    this.__identity__ = typeof data === "string" ? hexStringToU256(data) : coerceToBigInt(data, "Identity");
  }

  static getAlgebraicType(): IdentityAlgebraicType {
    return ALGEBRAIC_TYPE;
  }

  static fromString(str: string): Identity {
    return new Identity(str);
  }

  /** The identity with all bits zero. */
  static zero(): Identity {
    return new Identity(0n);
  }

  isEqual(other: Identity): boolean {
    return this.__identity__ === other.__identity__;
  }

  equals(other: Identity): boolean {
    return this.__identity__ === other.__identity__;
  }

  toString(): string {
    return this.toHexString();
  }

  /** 32 bytes, the least significant first. */
  toUint8Array(): Uint8Array {
    return u256ToUint8Array(this.__identity__);
  }

  /** 64 hexadecimal digits. */
  toHexString(): string {
    return u256ToHexString(this.__identity__);
  }
}
