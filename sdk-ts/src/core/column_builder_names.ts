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
import type { AnyTypeBuilder } from "./untyped";
import type { Uuid, UuidAlgebraicType } from "./uuid";

// The published package has a class for the columns of each type; here one class serves all types of a kind. These are the
// names of the former.

export const I8ColumnBuilder = SequenceColumnBuilder;
export type I8ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = SequenceColumnBuilder<
  number,
  AlgebraicTypeVariants.I8,
  M
>;
export const U8ColumnBuilder = SequenceColumnBuilder;
export type U8ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = SequenceColumnBuilder<
  number,
  AlgebraicTypeVariants.U8,
  M
>;
export const I16ColumnBuilder = SequenceColumnBuilder;
export type I16ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = SequenceColumnBuilder<
  number,
  AlgebraicTypeVariants.I16,
  M
>;
export const U16ColumnBuilder = SequenceColumnBuilder;
export type U16ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = SequenceColumnBuilder<
  number,
  AlgebraicTypeVariants.U16,
  M
>;
export const I32ColumnBuilder = SequenceColumnBuilder;
export type I32ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = SequenceColumnBuilder<
  number,
  AlgebraicTypeVariants.I32,
  M
>;
export const U32ColumnBuilder = SequenceColumnBuilder;
export type U32ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = SequenceColumnBuilder<
  number,
  AlgebraicTypeVariants.U32,
  M
>;
export const I64ColumnBuilder = SequenceColumnBuilder;
export type I64ColumnBuilder<M extends ColumnMetadata<bigint> = DefaultMetadata> = SequenceColumnBuilder<
  bigint,
  AlgebraicTypeVariants.I64,
  M
>;
export const U64ColumnBuilder = SequenceColumnBuilder;
export type U64ColumnBuilder<M extends ColumnMetadata<bigint> = DefaultMetadata> = SequenceColumnBuilder<
  bigint,
  AlgebraicTypeVariants.U64,
  M
>;
export const I128ColumnBuilder = SequenceColumnBuilder;
export type I128ColumnBuilder<M extends ColumnMetadata<bigint> = DefaultMetadata> = SequenceColumnBuilder<
  bigint,
  AlgebraicTypeVariants.I128,
  M
>;
export const U128ColumnBuilder = SequenceColumnBuilder;
export type U128ColumnBuilder<M extends ColumnMetadata<bigint> = DefaultMetadata> = SequenceColumnBuilder<
  bigint,
  AlgebraicTypeVariants.U128,
  M
>;
export const I256ColumnBuilder = SequenceColumnBuilder;
export type I256ColumnBuilder<M extends ColumnMetadata<bigint> = DefaultMetadata> = SequenceColumnBuilder<
  bigint,
  AlgebraicTypeVariants.I256,
  M
>;
export const U256ColumnBuilder = SequenceColumnBuilder;
export type U256ColumnBuilder<M extends ColumnMetadata<bigint> = DefaultMetadata> = SequenceColumnBuilder<
  bigint,
  AlgebraicTypeVariants.U256,
  M
>;
export const F32ColumnBuilder = PlainColumnBuilder;
export type F32ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = PlainColumnBuilder<
  number,
  AlgebraicTypeVariants.F32,
  M
>;
export const F64ColumnBuilder = PlainColumnBuilder;
export type F64ColumnBuilder<M extends ColumnMetadata<number> = DefaultMetadata> = PlainColumnBuilder<
  number,
  AlgebraicTypeVariants.F64,
  M
>;
export const BoolColumnBuilder = KeyColumnBuilder;
export type BoolColumnBuilder<M extends ColumnMetadata<boolean> = DefaultMetadata> = KeyColumnBuilder<
  boolean,
  AlgebraicTypeVariants.Bool,
  M
>;
export const StringColumnBuilder = KeyColumnBuilder;
export type StringColumnBuilder<M extends ColumnMetadata<string> = DefaultMetadata> = KeyColumnBuilder<
  string,
  AlgebraicTypeVariants.String,
  M
>;
export const IdentityColumnBuilder = KeyColumnBuilder;
export type IdentityColumnBuilder<M extends ColumnMetadata<Identity> = DefaultMetadata> = KeyColumnBuilder<
  Identity,
  IdentityAlgebraicType,
  M
>;
export const ConnectionIdColumnBuilder = KeyColumnBuilder;
export type ConnectionIdColumnBuilder<M extends ColumnMetadata<ConnectionId> = DefaultMetadata> =
  KeyColumnBuilder<ConnectionId, ConnectionIdAlgebraicType, M>;
export const TimestampColumnBuilder = KeyColumnBuilder;
export type TimestampColumnBuilder<M extends ColumnMetadata<Timestamp> = DefaultMetadata> = KeyColumnBuilder<
  Timestamp,
  TimestampAlgebraicType,
  M
>;
export const TimeDurationColumnBuilder = KeyColumnBuilder;
export type TimeDurationColumnBuilder<M extends ColumnMetadata<TimeDuration> = DefaultMetadata> =
  KeyColumnBuilder<TimeDuration, TimeDurationAlgebraicType, M>;
export const UuidColumnBuilder = KeyColumnBuilder;
export type UuidColumnBuilder<M extends ColumnMetadata<Uuid> = DefaultMetadata> = KeyColumnBuilder<
  Uuid,
  UuidAlgebraicType,
  M
>;
export const ScheduleAtColumnBuilder = PlainColumnBuilder;
export type ScheduleAtColumnBuilder<M extends ColumnMetadata<ScheduleAt> = DefaultMetadata> =
  PlainColumnBuilder<ScheduleAt, ScheduleAtAlgebraicType, M>;
export const ByteArrayColumnBuilder = PlainColumnBuilder;
export type ByteArrayColumnBuilder<M extends ColumnMetadata<Uint8Array> = DefaultMetadata> =
  PlainColumnBuilder<Uint8Array, { tag: "Array"; value: AlgebraicTypeVariants.U8 }, M>;
export const ArrayColumnBuilder = PlainColumnBuilder;
export type ArrayColumnBuilder<
  Element extends AnyTypeBuilder,
  M extends ColumnMetadata<Array<InferTypeOfTypeBuilder<Element>>> = DefaultMetadata,
> = PlainColumnBuilder<
  Array<InferTypeOfTypeBuilder<Element>>,
  { tag: "Array"; value: InferSpacetimeTypeOfTypeBuilder<Element> },
  M
>;
export const OptionColumnBuilder = PlainColumnBuilder;
export type OptionColumnBuilder<
  Value extends AnyTypeBuilder,
  M extends ColumnMetadata<InferTypeOfTypeBuilder<Value> | undefined> = DefaultMetadata,
> = PlainColumnBuilder<
  InferTypeOfTypeBuilder<Value> | undefined,
  OptionAlgebraicType<InferSpacetimeTypeOfTypeBuilder<Value>>,
  M
>;
export const ResultColumnBuilder = PlainColumnBuilder;
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
export const ProductColumnBuilder = PlainColumnBuilder;
export type ProductColumnBuilder<
  Elements extends ElementsObj,
  M extends ColumnMetadata<ObjectOf<Elements>> = DefaultMetadata,
> = PlainColumnBuilder<ObjectOf<Elements>, ProductOf<Elements>, M>;
export const SumColumnBuilder = KeyColumnBuilder;
export type SumColumnBuilder<
  Variants extends VariantsObj,
  M extends ColumnMetadata<ChoiceOf<Variants>> = DefaultMetadata,
> = KeyColumnBuilder<ChoiceOf<Variants>, SumOf<Variants>, M>;
export const SimpleSumColumnBuilder = KeyColumnBuilder;
export type SimpleSumColumnBuilder<
  Variants extends VariantsObj,
  M extends ColumnMetadata<ChoiceOf<Variants>> = DefaultMetadata,
> = SumColumnBuilder<Variants, M>;
