import { coerceToBigInt } from "./coerce";
import { hexStringToU128, u128ToHexString, u128ToUint8Array, uint8ArrayToU128 } from "./hex";

/** The algebraic type of `ConnectionId`. */
export type ConnectionIdAlgebraicType = {
  tag: "Product";
  value: { elements: [{ name: "__connection_id__"; algebraicType: { tag: "U128" } }] };
};

const ALGEBRAIC_TYPE: ConnectionIdAlgebraicType = {
  tag: "Product",
  value: { elements: [{ name: "__connection_id__", algebraicType: { tag: "U128" } }] },
};

/** Which connection of a user; zero means none (spec 01 §1.8.4). */
export class ConnectionId {
  __connection_id__: bigint;

  constructor(data: bigint) {
    this.__connection_id__ = coerceToBigInt(data, "ConnectionId");
  }

  static getAlgebraicType(): ConnectionIdAlgebraicType {
    return ALGEBRAIC_TYPE;
  }

  isZero(): boolean {
    return this.__connection_id__ === 0n;
  }

  static nullIfZero(addr: ConnectionId): ConnectionId | null {
    return addr.isZero() ? null : addr;
  }

  /** A new id, from the platform's secure random numbers where it has them. */
  static random(): ConnectionId {
    const bytes = Uint8Array.from({ length: 16 }, () => Math.random() * 256);
    globalThis.crypto?.getRandomValues(bytes);
    return new ConnectionId(uint8ArrayToU128(bytes));
  }

  isEqual(other: ConnectionId): boolean {
    return this.__connection_id__ === other.__connection_id__;
  }

  equals(other: ConnectionId): boolean {
    return this.__connection_id__ === other.__connection_id__;
  }

  static fromString(str: string): ConnectionId {
    return new ConnectionId(hexStringToU128(str));
  }

  static fromStringOrNull(str: string): ConnectionId | null {
    const id = ConnectionId.fromString(str);
    return id.isZero() ? null : id;
  }

  /** 16 bytes, the least significant first. */
  toUint8Array(): Uint8Array {
    return u128ToUint8Array(this.__connection_id__);
  }

  /** 32 hexadecimal digits. */
  toHexString(): string {
    return u128ToHexString(this.__connection_id__);
  }
}
