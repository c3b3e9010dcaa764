import type { AlgebraicTypeVariants } from "./algebraic_type";
import {
  type ColumnMetadata,
  type DefaultMetadata,
  KeyColumnBuilder,
  PlainColumnBuilder,
  SequenceColumnBuilder,
} from "./column_builders";
import type { ConnectionId, ConnectionIdAlgebraicType } from "./connection_id";
import type { Identity, IdentityAlgebraicType } from "./identity";
import type { OptionAlgebraicType } from "./option";
import type { ResultAlgebraicType } from "./result";
import type { ScheduleAt, ScheduleAtAlgebraicType } from "./schedule_at";
import type { TimeDuration, TimeDurationAlgebraicType } from "./time_duration";
import type { Timestamp, TimestampAlgebraicType } from "./timestamp";
import type {
  ChoiceOf,
  ElementsObj,
  InferSpacetimeTypeOfTypeBuilder,
  InferTypeOfTypeBuilder,
  ObjectOf,
  ProductOf,
  SumOf,
  VariantsObj,
} from "./type_inference";
import type { AnyTypeBuilder } from "./untyped_builders";
import type { Uuid, UuidAlgebraicType } from "./uuid";

// The published package has a class for the columns of each type; here one class serves all types of a kind. These are the
// names of the former.

/** A column of type `t.i8`. */
export const I8ColumnBuilder = SequenceColumnBuilder;
/** A column of type `t.i8`. */
export type I8ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = SequenceColumnBuilder<
  number,
  AlgebraicTypeVariants.I8,
  M
>;
/** A column of type `t.u8`. */
export const U8ColumnBuilder = SequenceColumnBuilder;
/** A column of type `t.u8`. */
export type U8ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = SequenceColumnBuilder<
  number,
  AlgebraicTypeVariants.U8,
  M
>;
/** A column of type `t.i16`. */
export const I16ColumnBuilder = SequenceColumnBuilder;
/** A column of type `t.i16`. */
export type I16ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = SequenceColumnBuilder<
  number,
  AlgebraicTypeVariants.I16,
  M
>;
/** A column of type `t.u16`. */
export const U16ColumnBuilder = SequenceColumnBuilder;
/** A column of type `t.u16`. */
export type U16ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = SequenceColumnBuilder<
  number,
  AlgebraicTypeVariants.U16,
  M
>;
/** A column of type `t.i32`. */
export const I32ColumnBuilder = SequenceColumnBuilder;
/** A column of type `t.i32`. */
export type I32ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = SequenceColumnBuilder<
  number,
  AlgebraicTypeVariants.I32,
  M
>;
/** A column of type `t.u32`. */
export const U32ColumnBuilder = SequenceColumnBuilder;
/** A column of type `t.u32`. */
export type U32ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = SequenceColumnBuilder<
  number,
  AlgebraicTypeVariants.U32,
  M
>;
/** A column of type `t.i64`. */
export const I64ColumnBuilder = SequenceColumnBuilder;
/** A column of type `t.i64`. */
export type I64ColumnBuilder<M extends ColumnMetadata<bigint> = DefaultMetadata> = SequenceColumnBuilder<
  bigint,
  AlgebraicTypeVariants.I64,
  M
>;
/** A column of type `t.u64`. */
export const U64ColumnBuilder = SequenceColumnBuilder;
/** A column of type `t.u64`. */
export type U64ColumnBuilder<M extends ColumnMetadata<bigint> = DefaultMetadata> = SequenceColumnBuilder<
  bigint,
  AlgebraicTypeVariants.U64,
  M
>;
/** A column of type `t.i128`. */
export const I128ColumnBuilder = SequenceColumnBuilder;
/** A column of type `t.i128`. */
export type I128ColumnBuilder<M extends ColumnMetadata<bigint> = DefaultMetadata> = SequenceColumnBuilder<
  bigint,
  AlgebraicTypeVariants.I128,
  M
>;
/** A column of type `t.u128`. */
export const U128ColumnBuilder = SequenceColumnBuilder;
/** A column of type `t.u128`. */
export type U128ColumnBuilder<M extends ColumnMetadata<bigint> = DefaultMetadata> = SequenceColumnBuilder<
  bigint,
  AlgebraicTypeVariants.U128,
  M
>;
/** A column of type `t.i256`. */
export const I256ColumnBuilder = SequenceColumnBuilder;
/** A column of type `t.i256`. */
export type I256ColumnBuilder<M extends ColumnMetadata<bigint> = DefaultMetadata> = SequenceColumnBuilder<
  bigint,
  AlgebraicTypeVariants.I256,
  M
>;
/** A column of type `t.u256`. */
export const U256ColumnBuilder = SequenceColumnBuilder;
/** A column of type `t.u256`. */
export type U256ColumnBuilder<M extends ColumnMetadata<bigint> = DefaultMetadata> = SequenceColumnBuilder<
  bigint,
  AlgebraicTypeVariants.U256,
  M
>;
/** A column of type `t.f32`. */
export const F32ColumnBuilder = PlainColumnBuilder;
/** A column of type `t.f32`. */
export type F32ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = PlainColumnBuilder<
  number,
  AlgebraicTypeVariants.F32,
  M
>;
/** A column of type `t.f64`. */
export const F64ColumnBuilder = PlainColumnBuilder;
/** A column of type `t.f64`. */
export type F64ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = PlainColumnBuilder<
  number,
  AlgebraicTypeVariants.F64,
  M
>;
/** A column of type `t.bool`. */
export const BoolColumnBuilder = KeyColumnBuilder;
/** A column of type `t.bool`. */
export type BoolColumnBuilder<M extends ColumnMetadata<boolean> = DefaultMetadata> = KeyColumnBuilder<
  boolean,
  AlgebraicTypeVariants.Bool,
  M
>;
/** A column of type `t.string`. */
export const StringColumnBuilder = KeyColumnBuilder;
/** A column of type `t.string`. */
export type StringColumnBuilder<M extends ColumnMetadata<string> = DefaultMetadata> = KeyColumnBuilder<
  string,
  AlgebraicTypeVariants.String,
  M
>;
/** A column of type `t.identity`. */
export const IdentityColumnBuilder = KeyColumnBuilder;
/** A column of type `t.identity`. */
export type IdentityColumnBuilder<M extends ColumnMetadata<Identity> = DefaultMetadata> = KeyColumnBuilder<
  Identity,
  IdentityAlgebraicType,
  M
>;
/** A column of type `t.connectionId`. */
export const ConnectionIdColumnBuilder = KeyColumnBuilder;
/** A column of type `t.connectionId`. */
export type ConnectionIdColumnBuilder<M extends ColumnMetadata<ConnectionId> = DefaultMetadata> =
  KeyColumnBuilder<ConnectionId, ConnectionIdAlgebraicType, M>;
/** A column of type `t.timestamp`. */
export const TimestampColumnBuilder = KeyColumnBuilder;
/** A column of type `t.timestamp`. */
export type TimestampColumnBuilder<M extends ColumnMetadata<Timestamp> = DefaultMetadata> = KeyColumnBuilder<
  Timestamp,
  TimestampAlgebraicType,
  M
>;
/** A column of type `t.timeDuration`. */
export const TimeDurationColumnBuilder = KeyColumnBuilder;
/** A column of type `t.timeDuration`. */
export type TimeDurationColumnBuilder<M extends ColumnMetadata<TimeDuration> = DefaultMetadata> =
  KeyColumnBuilder<TimeDuration, TimeDurationAlgebraicType, M>;
/** A column of type `t.uuid`. */
export const UuidColumnBuilder = KeyColumnBuilder;
/** A column of type `t.uuid`. */
export type UuidColumnBuilder<M extends ColumnMetadata<Uuid> = DefaultMetadata> = KeyColumnBuilder<
  Uuid,
  UuidAlgebraicType,
  M
>;
/** A column of type `t.scheduleAt`. */
export const ScheduleAtColumnBuilder = PlainColumnBuilder;
/** A column of type `t.scheduleAt`. */
export type ScheduleAtColumnBuilder<M extends ColumnMetadata<ScheduleAt> = DefaultMetadata> =
  PlainColumnBuilder<ScheduleAt, ScheduleAtAlgebraicType, M>;
/** A column of type `t.byteArray`. */
export const ByteArrayColumnBuilder = PlainColumnBuilder;
/** A column of type `t.byteArray`. */
export type ByteArrayColumnBuilder<M extends ColumnMetadata<Uint8Array> = DefaultMetadata> =
  PlainColumnBuilder<Uint8Array, { tag: "Array"; value: AlgebraicTypeVariants.U8 }, M>;
/** A column of type `t.array`. */
export const ArrayColumnBuilder = PlainColumnBuilder;
/** A column of type `t.array`. */
export type ArrayColumnBuilder<
  Element extends AnyTypeBuilder,
  M extends ColumnMetadata<Array<InferTypeOfTypeBuilder<Element>>> = DefaultMetadata,
> = PlainColumnBuilder<
  Array<InferTypeOfTypeBuilder<Element>>,
  { tag: "Array"; value: InferSpacetimeTypeOfTypeBuilder<Element> },
  M
>;
/** A column of type `t.option`. */
export const OptionColumnBuilder = PlainColumnBuilder;
/** A column of type `t.option`. */
export type OptionColumnBuilder<
  Value extends AnyTypeBuilder,
  M extends ColumnMetadata<InferTypeOfTypeBuilder<Value> | undefined> = DefaultMetadata,
> = PlainColumnBuilder<
  InferTypeOfTypeBuilder<Value> | undefined,
  OptionAlgebraicType<InferSpacetimeTypeOfTypeBuilder<Value>>,
  M
>;
/** A column of type `t.result`. */
export const ResultColumnBuilder = PlainColumnBuilder;
/** A column of type `t.result`. */
export type ResultColumnBuilder<
  Ok extends AnyTypeBuilder,
  Err extends AnyTypeBuilder,
  M extends ColumnMetadata<
    { ok: InferTypeOfTypeBuilder<Ok> } | { err: InferTypeOfTypeBuilder<Err> }
  > = DefaultMetadata,
> = PlainColumnBuilder<
  { ok: InferTypeOfTypeBuilder<Ok> } | { err: InferTypeOfTypeBuilder<Err> },
  ResultAlgebraicType<InferSpacetimeTypeOfTypeBuilder<Ok>, InferSpacetimeTypeOfTypeBuilder<Err>>,
  M
>;
/** A column of type `t.object`. */
export const ProductColumnBuilder = PlainColumnBuilder;
/** A column of type `t.object`. */
export type ProductColumnBuilder<
  Elements extends ElementsObj,
  M extends ColumnMetadata<ObjectOf<Elements>> = DefaultMetadata,
> = PlainColumnBuilder<ObjectOf<Elements>, ProductOf<Elements>, M>;
/** A column of type `t.enum`. */
export const SumColumnBuilder = KeyColumnBuilder;
/** A column of type `t.enum`. */
export type SumColumnBuilder<
  Variants extends VariantsObj,
  M extends ColumnMetadata<ChoiceOf<Variants>> = DefaultMetadata,
> = KeyColumnBuilder<ChoiceOf<Variants>, SumOf<Variants>, M>;
/** A column of type `t.enum` without contents. */
export const SimpleSumColumnBuilder = KeyColumnBuilder;
/** A column of type `t.enum` without contents. */
export type SimpleSumColumnBuilder<
  Variants extends VariantsObj,
  M extends ColumnMetadata<ChoiceOf<Variants>> = DefaultMetadata,
> = SumColumnBuilder<Variants, M>;
