import type { AlgebraicTypeType } from "./type_tree";

/** The algebraic type of `TimeDuration`. */
export type TimeDurationAlgebraicType = {
  tag: "Product";
  value: { elements: [{ name: "__time_duration_micros__"; algebraicType: { tag: "I64" } }] };
};

const ALGEBRAIC_TYPE: TimeDurationAlgebraicType = {
  tag: "Product",
  value: { elements: [{ name: "__time_duration_micros__", algebraicType: { tag: "I64" } }] },
};

/** A signed span of time in microseconds. */
export class TimeDuration {
  __time_duration_micros__: bigint;

  constructor(micros: bigint) {
    this.__time_duration_micros__ = micros;
  }

  static getAlgebraicType(): TimeDurationAlgebraicType {
    return ALGEBRAIC_TYPE;
  }

  static isTimeDuration(algebraicType: AlgebraicTypeType): algebraicType is TimeDurationAlgebraicType {
    return isMarkedProduct(algebraicType, "__time_duration_micros__", "I64");
  }

  get micros(): bigint {
    return this.__time_duration_micros__;
  }

  get millis(): number {
    return Number(this.__time_duration_micros__ / 1000n);
  }

  static fromMillis(millis: number): TimeDuration {
    return new TimeDuration(BigInt(millis) * 1000n);
  }

  /** A sign, whole seconds, and six digits: `-1.500000` (spec 01 §1.9). */
  toString(): string {
    const micros = this.__time_duration_micros__;
    const magnitude = micros < 0n ? -micros : micros;
    const fraction = (magnitude % 1_000_000n).toString().padStart(6, "0");
    return `${micros < 0n ? "-" : "+"}${magnitude / 1_000_000n}.${fraction}`;
  }
}

/** Whether a type is a product of one field with this name and type: the shape of the special types (spec 01 §1.2.1). */
export function isMarkedProduct(type: AlgebraicTypeType, name: string, fieldTag: string): boolean {
  if (type.tag !== "Product") return false;
  const { elements } = type.value;
  const field = elements[0];
  return elements.length === 1 && field?.name === name && field.algebraicType.tag === fieldTag;
}
