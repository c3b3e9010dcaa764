import { isMarkedProduct, TimeDuration } from "./time_duration";
import type { AlgebraicTypeType } from "./type_tree";

/** The algebraic type of `Timestamp`. */
export type TimestampAlgebraicType = {
  tag: "Product";
  value: { elements: [{ name: "__timestamp_micros_since_unix_epoch__"; algebraicType: { tag: "I64" } }] };
};

const ALGEBRAIC_TYPE: TimestampAlgebraicType = {
  tag: "Product",
  value: {
    elements: [{ name: "__timestamp_micros_since_unix_epoch__", algebraicType: { tag: "I64" } }],
  },
};

const LARGEST_DATE_MILLIS = 8_640_000_000_000_000n;

function dateOf(millis: bigint, use: string): Date {
  if (millis > LARGEST_DATE_MILLIS || millis < -LARGEST_DATE_MILLIS) {
    throw new RangeError(`Timestamp is outside of the representable range ${use} [LC0803]`);
  }
  return new Date(Number(millis));
}

/** A point in time: microseconds since the start of 1970, UTC. */
export class Timestamp {
  __timestamp_micros_since_unix_epoch__: bigint;

  constructor(micros: bigint) {
    this.__timestamp_micros_since_unix_epoch__ = micros;
  }

  /** The start of 1970, UTC. */
  static UNIX_EPOCH: Timestamp = /* @__PURE__ */ new Timestamp(0n);

  static getAlgebraicType(): TimestampAlgebraicType {
    return ALGEBRAIC_TYPE;
  }

  static isTimestamp(algebraicType: AlgebraicTypeType): algebraicType is TimestampAlgebraicType {
    return isMarkedProduct(algebraicType, "__timestamp_micros_since_unix_epoch__", "I64");
  }

  /** The time of this process. In a reducer, use `ctx.timestamp`. */
  static now(): Timestamp {
    return new Timestamp(BigInt(Date.now()) * 1000n);
  }

  static fromDate(date: Date): Timestamp {
    return new Timestamp(BigInt(date.getTime()) * 1000n);
  }

  get microsSinceUnixEpoch(): bigint {
    return this.__timestamp_micros_since_unix_epoch__;
  }

  toMillis(): bigint {
    return this.__timestamp_micros_since_unix_epoch__ / 1000n;
  }

  /** Without the microseconds; RangeError if a `Date` cannot express it. */
  toDate(): Date {
    return dateOf(this.toMillis(), "of a JavaScript Date");
  }

  /** RFC 3339 with six digits after the second: `2025-02-17T10:30:45.123456Z`. */
  toISOString(): string {
    const micros = this.__timestamp_micros_since_unix_epoch__;
    // Left over from whole milliseconds, rounded towards earlier times.
    const rest = ((micros % 1000n) + 1000n) % 1000n;
    const date = dateOf((micros - rest) / 1000n, "for ISO string formatting");
    return `${date.toISOString().slice(0, -1)}${rest.toString().padStart(3, "0")}Z`;
  }

  /** The time from `other` to this. */
  since(other: Timestamp): TimeDuration {
    return new TimeDuration(
      this.__timestamp_micros_since_unix_epoch__ - other.__timestamp_micros_since_unix_epoch__,
    );
  }
}
