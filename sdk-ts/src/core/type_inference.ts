// From builders to the types that they stand for: of values, and of the database.

import type { ColumnBuilder, ColumnMetadata } from "./column_builders";
import type { OptionBuilder, TypeBuilder, UnitBuilder } from "./type_builders";
import type { AlgebraicTypeType } from "./type_tree";
import type { FieldOf, Prettify } from "./type_util";
import type { AnyColumn, AnyTypeBuilder, TypedColumn } from "./untyped_builders";

/** The columns of a row, or the parameters of a function. */
export type RowObj = Record<string, AnyTypeBuilder | TypedColumn>;
/** The fields of a product. */
export type ElementsObj = Record<string, AnyTypeBuilder>;
/** The alternatives of a sum. */
export type VariantsObj = ElementsObj;
/** The alternatives of a sum that is a choice of names. */
export type UnitVariants<Name extends string = string> = Record<Name, UnitBuilder>;

/** The TypeScript type that a builder stands for. */
export type InferTypeOfTypeBuilder<T extends AnyTypeBuilder> = T extends TypeBuilder<infer Value, any>
  ? Prettify<Value>
  : never;

/** The algebraic type that a builder stands for. */
export type InferSpacetimeTypeOfTypeBuilder<T extends AnyTypeBuilder> = T extends TypeBuilder<
  any,
  infer SpacetimeType
>
  ? SpacetimeType
  : never;

/** The type of a builder, a row, or an object of columns. */
export type Infer<T> = T extends RowObj
  ? InferTypeOfRow<T>
  : T extends AnyTypeBuilder
    ? InferTypeOfTypeBuilder<T>
    : never;

// Rows and parameters -------------------------------------------------------------------------------------------------

/** The type of a column, without its metadata. */
export type BuilderOf<T extends AnyTypeBuilder | AnyColumn> = T extends AnyColumn ? T["typeBuilder"] : T;

type BuildersOf<Row extends RowObj> = { [Name in keyof Row & string]: BuilderOf<Row[Name]> };

type ValuesOf<Builders extends ElementsObj> = {
  [Name in keyof Builders]: InferTypeOfTypeBuilder<Builders[Name]>;
};

/** The names of the fields with such a type. */
type NamesWhere<Fields, Wanted> = {
  [Name in keyof Fields]: Fields[Name] extends Wanted ? Name : never;
}[keyof Fields];

/** The names of the fields that `undefined` is a value of. */
type NamesOfOptional<Fields> = {
  [Name in keyof Fields]: undefined extends Fields[Name] ? Name : never;
}[keyof Fields];

/** An object of which some fields may be left out. */
type MayLack<Fields, Names extends keyof Fields> = Prettify<
  Omit<Fields, Names> & Partial<Pick<Fields, Names>>
>;

/** The TypeScript type of a row; columns that are options may be left out. */
export type InferTypeOfRow<T extends RowObj> = MayLack<
  ValuesOf<BuildersOf<T>>,
  NamesWhere<BuildersOf<T>, OptionBuilder<any>>
>;

/** The TypeScript type of an argument object. */
export type InferTypeOfParams<T extends RowObj> = MayLack<
  ValuesOf<BuildersOf<T>>,
  NamesOfOptional<ValuesOf<BuildersOf<T>>>
>;

/** The algebraic types of the columns of a row. */
export type InferSpacetimeTypeOfRow<T extends RowObj> = {
  [Name in keyof T & string]: InferSpacetimeTypeOfTypeBuilder<BuilderOf<T[Name]>>;
};

/** A column, or a bare type as a column of which nothing is said. */
type ColumnFor<T> = T extends TypeBuilder<infer Value, infer Type extends AlgebraicTypeType>
  ? ColumnBuilder<Value, Type, ColumnMetadata<any>>
  : T;

/** Columns, each made of a column or of a bare type. */
export type ColumnsOf<Row extends RowObj> = { [Name in keyof Row & string]: ColumnFor<Row[Name]> };

/** The values of a row, none of which may be left out. */
export type WholeRow<Row extends RowObj> = {
  [Name in keyof Row]: InferTypeOfTypeBuilder<BuilderOf<Row[Name]>>;
};

// Products and sums ---------------------------------------------------------------------------------------------------

/** A field of a product, or a variant of a sum. */
type Member<Name extends string, Builder extends AnyTypeBuilder> = {
  name: Name;
  algebraicType: InferSpacetimeTypeOfTypeBuilder<Builder>;
};

/** The fields of a product, in any order. */
export type MembersOf<Row extends RowObj> = FieldOf<{
  [Name in keyof Row & string]: Member<Name, BuilderOf<Row[Name]>>;
}>[];

export type ProductOf<Fields extends ElementsObj> = {
  tag: "Product";
  value: { elements: MembersOf<Fields> };
};

export type SumOf<Variants extends VariantsObj> = {
  tag: "Sum";
  value: { variants: Member<keyof Variants & string, Variants[keyof Variants & string]>[] };
};

/** The TypeScript type of a product. */
export type ObjectOf<Fields extends ElementsObj> = ValuesOf<Fields>;

type Variant<Tag extends string, Content extends AnyTypeBuilder> = Content extends UnitBuilder
  ? { tag: Tag }
  : { tag: Tag; value: InferTypeOfTypeBuilder<Content> };

/** The TypeScript type of a sum: one `{ tag, value }` for each variant. */
export type ChoiceOf<Variants extends VariantsObj> = FieldOf<{
  [Tag in keyof Variants & string]: Variant<Tag, Variants[Tag]>;
}>;

/** A value for each variant without content, and a function for each of the others. */
export type VariantMakers<Variants extends VariantsObj> = {
  [Tag in keyof Variants & string]: Variants[Tag] extends UnitBuilder
    ? Variant<Tag, Variants[Tag]>
    : (value: InferTypeOfTypeBuilder<Variants[Tag]>) => Variant<Tag, Variants[Tag]>;
};
