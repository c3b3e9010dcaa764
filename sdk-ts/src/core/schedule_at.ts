import { TimeDuration, type TimeDurationAlgebraicType } from "./time_duration";
import { Timestamp, type TimestampAlgebraicType } from "./timestamp";
import type { AlgebraicTypeType } from "./type_tree";

/** The algebraic type of `ScheduleAt`. */
export type ScheduleAtAlgebraicType = {
  tag: "Sum";
  value: {
    variants: [
      { name: "Interval"; algebraicType: TimeDurationAlgebraicType },
      { name: "Time"; algebraicType: TimestampAlgebraicType },
    ];
  };
};

/** Again and again, with this time between two calls. */
export type Interval = { tag: "Interval"; value: TimeDuration };
/** Every so many microseconds. */
export const Interval = (micros: bigint): Interval => ({ tag: "Interval", value: new TimeDuration(micros) });

/** Once, at this time. */
export type Time = { tag: "Time"; value: Timestamp };
/** Once, at so many microseconds since 1970. */
export const Time = (microsSinceUnixEpoch: bigint): Time => ({
  tag: "Time",
  value: new Timestamp(microsSinceUnixEpoch),
});

/** When a row of a scheduled table is due (spec 01 §1.2.3). */
export type ScheduleAt = Interval | Time;
export const ScheduleAt = {
  interval: (micros: bigint): ScheduleAt => Interval(micros),
  time: (microsSinceUnixEpoch: bigint): ScheduleAt => Time(microsSinceUnixEpoch),

  getAlgebraicType(): ScheduleAtAlgebraicType {
    const interval = { name: "Interval", algebraicType: TimeDuration.getAlgebraicType() } as const;
    const time = { name: "Time", algebraicType: Timestamp.getAlgebraicType() } as const;
    return { tag: "Sum", value: { variants: [interval, time] } };
  },

  isScheduleAt(algebraicType: AlgebraicTypeType): algebraicType is ScheduleAtAlgebraicType {
    if (algebraicType.tag !== "Sum") return false;
    const [interval, time, ...more] = algebraicType.value.variants;
    return (
      more.length === 0 &&
      interval?.name === "Interval" &&
      time?.name === "Time" &&
      TimeDuration.isTimeDuration(interval.algebraicType) &&
      Timestamp.isTimestamp(time.algebraicType)
    );
  },
};

export default ScheduleAt;
