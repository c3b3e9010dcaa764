import type { ConnectionId } from "./connection_id";
import type { Identity } from "./identity";
import type { ScheduleAt } from "./schedule_at";
import type { TimeDuration } from "./time_duration";
import type { Timestamp } from "./timestamp";
import type { Uuid } from "./uuid";

type KeptAsIs = Identity | ConnectionId | Timestamp | TimeDuration | ScheduleAt | Uuid | Uint8Array;

/** Shows an intersection as one object in editors. */
export type Prettify<T> = T extends KeptAsIs ? T : { [K in keyof T]: T[K] } & {};

/** `T` with field `F` of type `V`. */
export type SetField<T, F extends string, V> = Prettify<Omit<T, F> & { [K in F]: V }>;

export type Values<T> = T[keyof T];

/** A list of one type is that type. */
export type CollapseTuple<A extends any[]> = A extends [infer T] ? T : A;

export type IsUnion<T, U = T> = [T] extends [never]
  ? false
  : T extends any
    ? [U] extends [T]
      ? false
      : true
    : false;

/** Whether an object type has one key; a type whose keys are unknown counts as such. */
export type HasExactlyOneKnownKey<T> = [keyof T] extends [never]
  ? false
  : string extends keyof T
    ? true
    : IsUnion<keyof T> extends true
      ? false
      : true;

type JoinWords<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<JoinWords<Tail>>}`
  : S extends `${infer Head}-${infer Tail}`
    ? `${Head}${Capitalize<JoinWords<Tail>>}`
    : S;

/** `some_name-x` as `someNameX`. */
export type CamelCase<S extends string> = Uncapitalize<JoinWords<S>>;

/** `some_name-x` as `SomeNameX`. */
export type PascalCase<S extends string> = Capitalize<JoinWords<S>>;

/** `someName` as `some_name`. */
export type SnakeCase<S extends string> = S extends `${infer Head}${infer Tail}`
  ? Tail extends Uncapitalize<Tail>
    ? `${Lowercase<Head>}${SnakeCase<Tail>}`
    : `${Lowercase<Head>}_${SnakeCase<Tail>}`
  : Lowercase<S>;

/** What the compiler shows for a column whose settings exclude each other. */
export type InvalidColumnMetadata<Message extends string> = {
  __error: Message;
  __brand: "InvalidColumnMetadata";
};

/** `M`, unless it has a default value and is a key or counted. */
export type ValidateColumnMetadata<M> = M extends { defaultValue: any }
  ? M extends { isPrimaryKey: true } | { isUnique: true } | { isAutoIncrement: true }
    ? InvalidColumnMetadata<"default() cannot be combined with primaryKey(), unique(), or autoInc()">
    : M
  : M;
