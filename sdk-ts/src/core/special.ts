import { ConnectionId } from "./connection_id";
import { Identity } from "./identity";
import { TimeDuration } from "./time_duration";
import { Timestamp } from "./timestamp";
import { Uuid } from "./uuid";

/** Values of the special products that have a literal in SQL. */
export type ComparableSpecial = Identity | ConnectionId | Timestamp | Uuid;

/** Values of the special products. */
export type Special = ComparableSpecial | TimeDuration;

/** The products with a class of their own, by the name of their field: as messages call a value. */
export const SPECIAL_NAMES: ReadonlyMap<string, string> = /* @__PURE__ */ new Map([
  ["__identity__", "an Identity"],
  ["__connection_id__", "a ConnectionId"],
  ["__timestamp_micros_since_unix_epoch__", "a Timestamp"],
  ["__time_duration_micros__", "a TimeDuration"],
  ["__uuid__", "a Uuid"],
]);

/** The classes of the special products, by the name of their field (spec 01 §1.2.1). */
export const SPECIAL_CLASSES: Record<string, new (value: bigint) => Special> = {
  __identity__: Identity,
  __connection_id__: ConnectionId,
  __timestamp_micros_since_unix_epoch__: Timestamp,
  __time_duration_micros__: TimeDuration,
  __uuid__: Uuid,
};

export function makeSpecial(field: string, value: bigint): Special {
  return new SPECIAL_CLASSES[field]!(value);
}
