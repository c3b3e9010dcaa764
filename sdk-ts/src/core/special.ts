import { ConnectionId } from "./connection_id";
import { Identity } from "./identity";
import { TimeDuration } from "./time_duration";
import { Timestamp } from "./timestamp";
import { Uuid } from "./uuid";

/** The classes of the special products, by the name of their field (spec 01 §1.2.1). */
export const SPECIAL_CLASSES: Record<string, new (value: bigint) => object> = {
  __identity__: Identity,
  __connection_id__: ConnectionId,
  __timestamp_micros_since_unix_epoch__: Timestamp,
  __time_duration_micros__: TimeDuration,
  __uuid__: Uuid,
};

export function makeSpecial(field: string, value: bigint): object {
  return new SPECIAL_CLASSES[field]!(value);
}
