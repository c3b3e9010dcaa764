import { AlgebraicType, type AlgebraicTypeVariants } from "./algebraic_type";
import type { BinaryReader } from "./binary_reader";
import type { BinaryWriter } from "./binary_writer";
import { deserializerOf, serializerOf } from "./codec";
import {
  ColumnBuilder,
  type ColumnMetadata,
  type DefaultMetadata,
  type IndexTypes,
  KeyColumnBuilder,
  PlainColumnBuilder,
  SequenceColumnBuilder,
} from "./column_builders";
import { ConnectionId, type ConnectionIdAlgebraicType } from "./connection_id";
import { Identity, type IdentityAlgebraicType } from "./identity";
import { Option, type OptionAlgebraicType } from "./option";
import { Result, type ResultAlgebraicType } from "./result";
import { ScheduleAt, type ScheduleAtAlgebraicType } from "./schedule_at";
import { TimeDuration, type TimeDurationAlgebraicType } from "./time_duration";
import { Timestamp, type TimestampAlgebraicType } from "./timestamp";
import type {
  ChoiceOf,
  ColumnsOf,
  ElementsObj,
  InferSpacetimeTypeOfTypeBuilder,
  InferTypeOfTypeBuilder,
  MembersOf,
  ObjectOf,
  ProductOf,
  RowObj,
  SumOf,
  UnitVariants,
  VariantMakers,
  VariantsObj,
  WholeRow,
} from "./type_inference";
import type { WithMetadata } from "./type_util";
import type { AnyColumn, AnyTypeBuilder } from "./untyped_builders";
import { Uuid, type UuidAlgebraicType } from "./uuid";

/** A type, for the compiler and at run time. `t` has a function for each kind. */
export class TypeBuilder<Type, SpacetimeType extends AlgebraicType> {
  /** For the compiler only. */
  declare readonly type: Type;
  readonly algebraicType: SpacetimeType;

  constructor(algebraicType: SpacetimeType) {
    this.algebraicType = algebraicType;
  }

  /** This type, or nothing: `undefined`. */
  optional(): OptionBuilder<this> {
    return new OptionBuilder(this);
  }

  serialize(writer: BinaryWriter, value: Type): void {
    serializerOf(this.algebraicType)(writer, value);
  }

  deserialize(reader: BinaryReader): Type {
    return deserializerOf(this.algebraicType)(reader);
  }
}

type EmptyProduct = { tag: "Product"; value: { elements: [] } };

/** A type whose values cannot be keys. */
export class PlainBuilder<Type, SpacetimeType extends AlgebraicType> extends TypeBuilder<
  Type,
  SpacetimeType
> {
  /** The value that existing rows get when the column is added to a table that has rows. */
  default(
    value: Type,
  ): PlainColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "defaultValue", Type>> {
    return new PlainColumnBuilder(this, { defaultValue: value });
  }

  /** The name in the database, if it differs from the property. */
  name<const Name extends string>(
    name: Name,
  ): PlainColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "name", Name>> {
    return new PlainColumnBuilder(this, { name });
  }
}

/** A type whose values can be keys. */
export class KeyBuilder<Type, SpacetimeType extends AlgebraicType> extends TypeBuilder<Type, SpacetimeType> {
  protected column(metadata: ColumnMetadata<Type>): any {
    return new KeyColumnBuilder(this, metadata);
  }

  index(): KeyColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "indexType", "btree">>;
  index<N extends NonNullable<IndexTypes>>(
    algorithm: N,
  ): KeyColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "indexType", N>>;
  /** An index over this column: `btree` unless told otherwise. */
  index(algorithm: NonNullable<IndexTypes> = "btree"): any {
    return this.column({ indexType: algorithm });
  }

  /** No two rows have the same value here. */
  unique(): KeyColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "isUnique", true>> {
    return this.column({ isUnique: true });
  }

  /** The column by which rows are known: unique, and what `update` finds a row by. */
  primaryKey(): KeyColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "isPrimaryKey", true>> {
    return this.column({ isPrimaryKey: true });
  }

  /** The value that existing rows get when the column is added to a table that has rows. */
  default(
    value: Type,
  ): KeyColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "defaultValue", Type>> {
    return this.column({ defaultValue: value });
  }

  /** The name in the database, if it differs from the property. */
  name<const Name extends string>(
    name: Name,
  ): KeyColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "name", Name>> {
    return this.column({ name });
  }
}

/** A type of whole numbers. */
export class SequenceBuilder<Type, SpacetimeType extends AlgebraicType> extends TypeBuilder<
  Type,
  SpacetimeType
> {
  protected column(metadata: ColumnMetadata<Type>): any {
    return new SequenceColumnBuilder(this, metadata);
  }

  index(): SequenceColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "indexType", "btree">>;
  index<N extends NonNullable<IndexTypes>>(
    algorithm: N,
  ): SequenceColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "indexType", N>>;
  /** An index over this column: `btree` unless told otherwise. */
  index(algorithm: NonNullable<IndexTypes> = "btree"): any {
    return this.column({ indexType: algorithm });
  }

  /** No two rows have the same value here. */
  unique(): SequenceColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "isUnique", true>> {
    return this.column({ isUnique: true });
  }

  /** The column by which rows are known: unique, and what `update` finds a row by. */
  primaryKey(): SequenceColumnBuilder<
    Type,
    SpacetimeType,
    WithMetadata<DefaultMetadata, "isPrimaryKey", true>
  > {
    return this.column({ isPrimaryKey: true });
  }

  /** A row inserted with zero here gets the next number. */
  autoInc(): SequenceColumnBuilder<
    Type,
    SpacetimeType,
    WithMetadata<DefaultMetadata, "isAutoIncrement", true>
  > {
    return this.column({ isAutoIncrement: true });
  }

  /** The value that existing rows get when the column is added to a table that has rows. */
  default(
    value: Type,
  ): SequenceColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "defaultValue", Type>> {
    return this.column({ defaultValue: value });
  }

  /** The name in the database, if it differs from the property. */
  name<const Name extends string>(
    name: Name,
  ): SequenceColumnBuilder<Type, SpacetimeType, WithMetadata<DefaultMetadata, "name", Name>> {
    return this.column({ name });
  }
}

/** The type `t.bool`. */
export class BoolBuilder extends KeyBuilder<boolean, AlgebraicTypeVariants.Bool> {
  constructor() {
    super(AlgebraicType.Bool);
  }
}
/** The type `t.string`. */
export class StringBuilder extends KeyBuilder<string, AlgebraicTypeVariants.String> {
  constructor() {
    super(AlgebraicType.String);
  }
}
/** The type `t.f32`. */
export class F32Builder extends PlainBuilder<number, AlgebraicTypeVariants.F32> {
  constructor() {
    super(AlgebraicType.F32);
  }
}
/** The type `t.f64`. */
export class F64Builder extends PlainBuilder<number, AlgebraicTypeVariants.F64> {
  constructor() {
    super(AlgebraicType.F64);
  }
}
/** The type `t.i8`. */
export class I8Builder extends SequenceBuilder<number, AlgebraicTypeVariants.I8> {
  constructor() {
    super(AlgebraicType.I8);
  }
}
/** The type `t.u8`. */
export class U8Builder extends SequenceBuilder<number, AlgebraicTypeVariants.U8> {
  constructor() {
    super(AlgebraicType.U8);
  }
}
/** The type `t.i16`. */
export class I16Builder extends SequenceBuilder<number, AlgebraicTypeVariants.I16> {
  constructor() {
    super(AlgebraicType.I16);
  }
}
/** The type `t.u16`. */
export class U16Builder extends SequenceBuilder<number, AlgebraicTypeVariants.U16> {
  constructor() {
    super(AlgebraicType.U16);
  }
}
/** The type `t.i32`. */
export class I32Builder extends SequenceBuilder<number, AlgebraicTypeVariants.I32> {
  constructor() {
    super(AlgebraicType.I32);
  }
}
/** The type `t.u32`. */
export class U32Builder extends SequenceBuilder<number, AlgebraicTypeVariants.U32> {
  constructor() {
    super(AlgebraicType.U32);
  }
}
/** The type `t.i64`. */
export class I64Builder extends SequenceBuilder<bigint, AlgebraicTypeVariants.I64> {
  constructor() {
    super(AlgebraicType.I64);
  }
}
/** The type `t.u64`. */
export class U64Builder extends SequenceBuilder<bigint, AlgebraicTypeVariants.U64> {
  constructor() {
    super(AlgebraicType.U64);
  }
}
/** The type `t.i128`. */
export class I128Builder extends SequenceBuilder<bigint, AlgebraicTypeVariants.I128> {
  constructor() {
    super(AlgebraicType.I128);
  }
}
/** The type `t.u128`. */
export class U128Builder extends SequenceBuilder<bigint, AlgebraicTypeVariants.U128> {
  constructor() {
    super(AlgebraicType.U128);
  }
}
/** The type `t.i256`. */
export class I256Builder extends SequenceBuilder<bigint, AlgebraicTypeVariants.I256> {
  constructor() {
    super(AlgebraicType.I256);
  }
}
/** The type `t.u256`. */
export class U256Builder extends SequenceBuilder<bigint, AlgebraicTypeVariants.U256> {
  constructor() {
    super(AlgebraicType.U256);
  }
}
/** The type `t.identity`. */
export class IdentityBuilder extends KeyBuilder<Identity, IdentityAlgebraicType> {
  constructor() {
    super(Identity.getAlgebraicType());
  }
}
/** The type `t.connectionId`. */
export class ConnectionIdBuilder extends KeyBuilder<ConnectionId, ConnectionIdAlgebraicType> {
  constructor() {
    super(ConnectionId.getAlgebraicType());
  }
}
/** The type `t.timestamp`. */
export class TimestampBuilder extends KeyBuilder<Timestamp, TimestampAlgebraicType> {
  constructor() {
    super(Timestamp.getAlgebraicType());
  }
}
/** The type `t.timeDuration`. */
export class TimeDurationBuilder extends KeyBuilder<TimeDuration, TimeDurationAlgebraicType> {
  constructor() {
    super(TimeDuration.getAlgebraicType());
  }
}
/** The type `t.uuid`. */
export class UuidBuilder extends KeyBuilder<Uuid, UuidAlgebraicType> {
  constructor() {
    super(Uuid.getAlgebraicType());
  }
}
/** The type `t.scheduleAt`. */
export class ScheduleAtBuilder extends PlainBuilder<ScheduleAt, ScheduleAtAlgebraicType> {
  constructor() {
    super(ScheduleAt.getAlgebraicType());
  }
}
/** The type `t.byteArray`. */
export class ByteArrayBuilder extends PlainBuilder<
  Uint8Array,
  { tag: "Array"; value: AlgebraicTypeVariants.U8 }
> {
  constructor() {
    super(AlgebraicType.Array(AlgebraicType.U8));
  }
}
/** The type without content. */
export class UnitBuilder extends TypeBuilder<{}, EmptyProduct> {
  constructor() {
    super(AlgebraicType.Product({ elements: [] }));
  }
}

/** The type `t.array`. */
export class ArrayBuilder<Element extends AnyTypeBuilder> extends PlainBuilder<
  Array<InferTypeOfTypeBuilder<Element>>,
  { tag: "Array"; value: InferSpacetimeTypeOfTypeBuilder<Element> }
> {
  constructor(public element: Element) {
    super(AlgebraicType.Array(element.algebraicType));
  }
}

/** The type `t.option`. */
export class OptionBuilder<Value extends AnyTypeBuilder> extends PlainBuilder<
  InferTypeOfTypeBuilder<Value> | undefined,
  OptionAlgebraicType<InferSpacetimeTypeOfTypeBuilder<Value>>
> {
  constructor(public value: Value) {
    super(Option.getAlgebraicType(value.algebraicType));
  }
}

/** The type `t.result`. */
export class ResultBuilder<Ok extends AnyTypeBuilder, Err extends AnyTypeBuilder> extends PlainBuilder<
  { ok: InferTypeOfTypeBuilder<Ok> } | { err: InferTypeOfTypeBuilder<Err> },
  ResultAlgebraicType<InferSpacetimeTypeOfTypeBuilder<Ok>, InferSpacetimeTypeOfTypeBuilder<Err>>
> {
  constructor(
    public ok: Ok,
    public err: Err,
  ) {
    super(Result.getAlgebraicType(ok.algebraicType, err.algebraicType));
  }
}

/** The type `t.object`. */
export class ProductBuilder<Elements extends ElementsObj> extends PlainBuilder<
  ObjectOf<Elements>,
  ProductOf<Elements>
> {
  readonly typeName: string | undefined;
  readonly elements: Elements;

  constructor(elements: Elements, name?: string) {
    // Filled on first use: a type may contain itself, by way of `t.lazy`.
    super({ tag: "Product", value: { elements: [] } });
    this.typeName = name;
    this.elements = elements;
    lazily(this.algebraicType.value, "elements", () =>
      Object.entries(elements).map(([field, builder]) => ({
        name: field,
        algebraicType: builder.algebraicType,
      })),
    );
  }
}

/** The rows of a table: `t.row`. */
export class RowBuilder<Row extends RowObj> extends TypeBuilder<
  WholeRow<ColumnsOf<Row>>,
  { tag: "Product"; value: { elements: MembersOf<ColumnsOf<Row>> } }
> {
  readonly row: ColumnsOf<Row>;
  typeName: string | undefined;

  constructor(row: Row, name?: string) {
    super({ tag: "Product", value: { elements: [] } });
    this.typeName = name;
    this.row = Object.fromEntries(
      Object.entries(row).map(([field, column]) => [
        field,
        column instanceof ColumnBuilder ? column : new ColumnBuilder(column, {}),
      ]),
    ) as unknown as ColumnsOf<Row>;
    const columns: Record<string, AnyColumn> = this.row;
    lazily(this.algebraicType.value, "elements", () =>
      Object.entries(columns).map(([field, column]) => ({
        name: field,
        algebraicType: column.typeBuilder.algebraicType,
      })),
    );
  }
}

class SumBuilderImpl<Variants extends VariantsObj> extends KeyBuilder<ChoiceOf<Variants>, SumOf<Variants>> {
  readonly typeName: string | undefined;

  constructor(
    readonly variants: Variants,
    name?: string,
  ) {
    super({ tag: "Sum", value: { variants: [] } });
    this.typeName = name;
    lazily(this.algebraicType.value, "variants", () =>
      Object.entries(variants).map(([variant, builder]) => ({
        name: variant,
        algebraicType: builder.algebraicType,
      })),
    );
    for (const variant of Object.keys(variants)) {
      // Looked at when used: the type of a variant may be defined further down.
      lazily(this, variant, () =>
        variants[variant] instanceof UnitBuilder
          ? Object.freeze({ tag: variant })
          : (value: unknown) => ({ tag: variant, value }),
      );
    }
  }
}

/** A choice of variants, with a value or a function for each. */
export type SumBuilder<Variants extends VariantsObj> = SumBuilderImpl<Variants> & VariantMakers<Variants>;
/** The type `t.enum`. */
export const SumBuilder = SumBuilderImpl as unknown as {
  // biome-ignore lint/correctness/noUnusedVariables: it is used in the result
  new <Variants extends VariantsObj>(variants: Variants, name?: string): SumBuilder<Variants>;
  [Symbol.hasInstance](x: any): x is SumBuilder<VariantsObj>;
};

class SimpleSumBuilderImpl<Variants extends UnitVariants> extends SumBuilderImpl<Variants> {}

/** A choice of variants without content. */
export type SimpleSumBuilder<Variants extends UnitVariants> = SimpleSumBuilderImpl<Variants> &
  VariantMakers<Variants>;
/** The type `t.enum` without contents. */
export const SimpleSumBuilder = SimpleSumBuilderImpl as unknown as {
  new <Variants extends UnitVariants>(variants: Variants, name?: string): SimpleSumBuilder<Variants>;
};

/** A type by its position in a module's typespace. */
export class RefBuilder<Type, SpacetimeType> extends TypeBuilder<Type, AlgebraicTypeVariants.Ref> {
  readonly ref: number;
  /** For the compiler only. */
  private declare readonly __spacetimeType: SpacetimeType;

  constructor(ref: number) {
    super(AlgebraicType.Ref(ref));
    this.ref = ref;
  }
}

/** Defines a property that is computed when it is first read. */
function lazily(object: object, property: string, make: () => unknown): void {
  Object.defineProperty(object, property, {
    configurable: true,
    enumerable: true,
    get() {
      const value = make();
      Object.defineProperty(object, property, {
        value,
        writable: true,
        configurable: true,
        enumerable: true,
      });
      return value;
    },
  });
}

interface DefinesEnum {
  (name: string, cases: []): SimpleSumBuilder<UnitVariants<never>>;
  <Name extends string>(
    name: string,
    cases: readonly [Name, ...Name[]],
  ): SimpleSumBuilder<UnitVariants<Name>>;
  <Variants extends VariantsObj>(name: string, obj: Variants): SumBuilder<Variants>;
}

interface DefinesRow {
  <Row extends RowObj>(obj: Row): RowBuilder<Row>;
  <Row extends RowObj>(name: string, obj: Row): RowBuilder<Row>;
}

/** A function that makes builders of a type without parts. */
function makes<Builder>(Kind: new () => Builder): () => Builder {
  return () => new Kind();
}

/** A function for each kind of type. */
export const t = {
  bool: makes(BoolBuilder),
  string: makes(StringBuilder),
  /** A JavaScript number: the same as `f64`. */
  number: makes(F64Builder),
  i8: makes(I8Builder),
  u8: makes(U8Builder),
  i16: makes(I16Builder),
  u16: makes(U16Builder),
  i32: makes(I32Builder),
  u32: makes(U32Builder),
  i64: makes(I64Builder),
  u64: makes(U64Builder),
  i128: makes(I128Builder),
  u128: makes(U128Builder),
  i256: makes(I256Builder),
  u256: makes(U256Builder),
  f32: makes(F32Builder),
  f64: makes(F64Builder),
  identity: makes(IdentityBuilder),
  connectionId: makes(ConnectionIdBuilder),
  timestamp: makes(TimestampBuilder),
  timeDuration: makes(TimeDurationBuilder),
  /** When a row of a scheduled table is due. */
  scheduleAt: makes(ScheduleAtBuilder),
  uuid: makes(UuidBuilder),
  byteArray: makes(ByteArrayBuilder),
  /** Nothing: the type without content. */
  unit: makes(UnitBuilder),

  /** A named type with fields. */
  object: <Obj extends ElementsObj>(name: string, obj: Obj): ProductBuilder<Obj> =>
    new ProductBuilder(obj, name),

  /** The columns of a table, to be used for several tables or as a parameter. */
  row: ((nameOrRow: string | RowObj, row?: RowObj) =>
    typeof nameOrRow === "string"
      ? new RowBuilder(row!, nameOrRow)
      : new RowBuilder(nameOrRow)) as DefinesRow,

  array: <Element extends AnyTypeBuilder>(e: Element): ArrayBuilder<Element> => new ArrayBuilder(e),

  /** A named choice: of names, or of types by name. */
  enum: ((name: string, variants: readonly string[] | VariantsObj) =>
    Array.isArray(variants)
      ? new SimpleSumBuilder(
          Object.fromEntries(variants.map((variant) => [variant, new UnitBuilder()])),
          name,
        )
      : new SumBuilder(variants as VariantsObj, name)) as DefinesEnum,

  /** A type that is defined further down, or that contains itself. */
  lazy: <Build extends () => AnyTypeBuilder>(thunk: Build): ReturnType<Build> => {
    let made: AnyTypeBuilder | undefined;
    const get = () => {
      made ??= thunk();
      return made;
    };
    return new Proxy({} as ReturnType<Build>, {
      get: (_, property) => {
        const target = get();
        const value: unknown = Reflect.get(target, property);
        return typeof value === "function" ? value.bind(target) : value;
      },
      set: (_, property, value) => Reflect.set(get(), property, value),
      has: (_, property) => property in get(),
      getPrototypeOf: () => Object.getPrototypeOf(get()),
      ownKeys: () => Reflect.ownKeys(get()),
      getOwnPropertyDescriptor: (_, property) => {
        const descriptor = Object.getOwnPropertyDescriptor(get(), property);
        if (descriptor) descriptor.configurable = true;
        return descriptor;
      },
    });
  },

  /** A value, or `undefined`. */
  option: <Value extends AnyTypeBuilder>(value: Value): OptionBuilder<Value> => new OptionBuilder(value),
  /** `{ ok }` or `{ err }`. */
  result: <Ok extends AnyTypeBuilder, Err extends AnyTypeBuilder>(ok: Ok, err: Err): ResultBuilder<Ok, Err> =>
    new ResultBuilder(ok, err),
} as const;

export { ColumnBuilder, type ColumnMetadata, type IndexTypes };
export type {
  ElementsObj,
  Infer,
  InferSpacetimeTypeOfRow,
  InferSpacetimeTypeOfTypeBuilder,
  InferTypeOfParams,
  InferTypeOfRow,
  InferTypeOfTypeBuilder,
  RowObj,
  VariantsObj,
} from "./type_inference";
export type { AlgebraicTypeType } from "./type_tree";
export default t;
