import type { BinaryReader } from "./binary_reader";
import type { BinaryWriter } from "./binary_writer";
import type { TypeBuilder } from "./type_builders";
import type { AlgebraicTypeType } from "./type_tree";
import type { WithMetadata } from "./type_util";

/** The kinds of an index of one column. */
export type IndexTypes = "btree" | "direct" | "hash" | undefined;

/** The metadata of a column. */
export type ColumnMetadata<Type = any> = {
  isPrimaryKey?: true;
  isUnique?: true;
  isAutoIncrement?: true;
  indexType?: IndexTypes;
  defaultValue?: Type;
  name?: string;
};

/** Of a column of which nothing is said. */
export type DefaultMetadata = object;

/** A column: a type, and what the methods of its builder said about it. */
export class ColumnBuilder<
  Type,
  SpacetimeType extends AlgebraicTypeType,
  M extends ColumnMetadata<Type> = DefaultMetadata,
> {
  constructor(
    public typeBuilder: TypeBuilder<Type, SpacetimeType>,
    public columnMetadata: M,
  ) {}

  deserialize(reader: BinaryReader): Type {
    return this.typeBuilder.deserialize(reader);
  }

  serialize(writer: BinaryWriter, value: Type): void {
    this.typeBuilder.serialize(writer, value);
  }

  /** A column of this kind with one more property. */
  protected with(property: string, value: unknown): any {
    const Same = this.constructor as new (typeBuilder: unknown, metadata: unknown) => unknown;
    return new Same(this.typeBuilder, { ...this.columnMetadata, [property]: value });
  }
}

/** A column that cannot be a key. */
export class PlainColumnBuilder<
  Type,
  SpacetimeType extends AlgebraicTypeType,
  M extends ColumnMetadata<Type> = DefaultMetadata,
> extends ColumnBuilder<Type, SpacetimeType, M> {
  /** The value that existing rows get when the column is added to a table that has rows. */
  default(value: Type): PlainColumnBuilder<Type, SpacetimeType, WithMetadata<M, "defaultValue", Type>> {
    return this.with("defaultValue", value);
  }

  /** The name in the database, if it differs from the property. */
  name<const Name extends string>(
    name: Name,
  ): PlainColumnBuilder<Type, SpacetimeType, WithMetadata<M, "name", Name>> {
    return this.with("name", name);
  }
}

/** A column that can be a key. */
export class KeyColumnBuilder<
  Type,
  SpacetimeType extends AlgebraicTypeType,
  M extends ColumnMetadata<Type> = DefaultMetadata,
> extends ColumnBuilder<Type, SpacetimeType, M> {
  index(): KeyColumnBuilder<Type, SpacetimeType, WithMetadata<M, "indexType", "btree">>;
  index<N extends NonNullable<IndexTypes>>(
    algorithm: N,
  ): KeyColumnBuilder<Type, SpacetimeType, WithMetadata<M, "indexType", N>>;
  /** An index over this column: `btree` unless told otherwise. */
  index(algorithm: NonNullable<IndexTypes> = "btree"): any {
    return this.with("indexType", algorithm);
  }

  /** No two rows have the same value here. */
  unique(): KeyColumnBuilder<Type, SpacetimeType, WithMetadata<M, "isUnique", true>> {
    return this.with("isUnique", true);
  }

  /** The column by which rows are known: unique, and what `update` finds a row by. */
  primaryKey(): KeyColumnBuilder<Type, SpacetimeType, WithMetadata<M, "isPrimaryKey", true>> {
    return this.with("isPrimaryKey", true);
  }

  /** The value that existing rows get when the column is added to a table that has rows. */
  default(value: Type): KeyColumnBuilder<Type, SpacetimeType, WithMetadata<M, "defaultValue", Type>> {
    return this.with("defaultValue", value);
  }

  /** The name in the database, if it differs from the property. */
  name<const Name extends string>(
    name: Name,
  ): KeyColumnBuilder<Type, SpacetimeType, WithMetadata<M, "name", Name>> {
    return this.with("name", name);
  }
}

/** A column of whole numbers: a key, and the database can count it. */
export class SequenceColumnBuilder<
  Type,
  SpacetimeType extends AlgebraicTypeType,
  M extends ColumnMetadata<Type> = DefaultMetadata,
> extends ColumnBuilder<Type, SpacetimeType, M> {
  index(): SequenceColumnBuilder<Type, SpacetimeType, WithMetadata<M, "indexType", "btree">>;
  index<N extends NonNullable<IndexTypes>>(
    algorithm: N,
  ): SequenceColumnBuilder<Type, SpacetimeType, WithMetadata<M, "indexType", N>>;
  /** An index over this column: `btree` unless told otherwise. */
  index(algorithm: NonNullable<IndexTypes> = "btree"): any {
    return this.with("indexType", algorithm);
  }

  /** No two rows have the same value here. */
  unique(): SequenceColumnBuilder<Type, SpacetimeType, WithMetadata<M, "isUnique", true>> {
    return this.with("isUnique", true);
  }

  /** The column by which rows are known: unique, and what `update` finds a row by. */
  primaryKey(): SequenceColumnBuilder<Type, SpacetimeType, WithMetadata<M, "isPrimaryKey", true>> {
    return this.with("isPrimaryKey", true);
  }

  /** A row inserted with zero here gets the next number. */
  autoInc(): SequenceColumnBuilder<Type, SpacetimeType, WithMetadata<M, "isAutoIncrement", true>> {
    return this.with("isAutoIncrement", true);
  }

  /** The value that existing rows get when the column is added to a table that has rows. */
  default(value: Type): SequenceColumnBuilder<Type, SpacetimeType, WithMetadata<M, "defaultValue", Type>> {
    return this.with("defaultValue", value);
  }

  /** The name in the database, if it differs from the property. */
  name<const Name extends string>(
    name: Name,
  ): SequenceColumnBuilder<Type, SpacetimeType, WithMetadata<M, "name", Name>> {
    return this.with("name", name);
  }
}
