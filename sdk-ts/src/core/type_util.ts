import type { ScheduleAt } from "./schedule_at";
import type { Special } from "./special";

/** Values that editors show by name, and not by their fields. */
type ShownByName = Uint8Array | ScheduleAt | Special;

/** An object type as one list of fields, however it was put together. */
export type Prettify<T> = T extends ShownByName ? T : { [Field in keyof T]: T[Field] } & {};

/** The metadata of a column with one more entry. */
export type WithMetadata<M, Key extends string, Value> = Prettify<{ [K in Key]: Value } & Omit<M, Key>>;

/** The types of the fields of an object. */
export type FieldOf<T> = T[keyof T];

/** Whether a type is `any`. */
export type IsAny<T> = boolean extends (T extends never ? true : false) ? true : false;

/** A name without separators: a word that follows one begins with a capital letter. */
type Joined<Name extends string, Done extends string = ""> = Name extends `${infer First}${infer Rest}`
  ? First extends "_" | "-"
    ? `${Done}${Capitalize<Joined<Rest>>}`
    : Joined<Rest, `${Done}${First}`>
  : `${Done}${Name}`;

/** `some_name-x` as `someNameX`. */
export type CamelCase<Name extends string> = Uncapitalize<Joined<Name>>;

/** `some_name-x` as `SomeNameX`. */
export type PascalCase<Name extends string> = Capitalize<Joined<Name>>;

/** `someName` as `some_name`. */
export type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${Lowercase<First>}${Rest extends Uncapitalize<Rest> ? "" : "_"}${SnakeCase<Rest>}`
  : Lowercase<Name>;
