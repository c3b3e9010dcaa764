import type { AlgebraicType } from "./algebraic_type";
import type { ColumnBuilder, ColumnMetadata } from "./column_builders";
import type { OptionBuilder, TypeBuilder, UnitBuilder } from "./type_builders";
import type { Prettify } from "./type_util";

/** The TypeScript type that a builder stands for. */
export type InferTypeOfTypeBuilder<T extends TypeBuilder<any, any>> = T extends TypeBuilder<infer U, any>
  ? Prettify<U>
  : never;

/** The algebraic type that a builder stands for. */
export type InferSpacetimeTypeOfTypeBuilder<T extends TypeBuilder<any, any>> = T extends TypeBuilder<
  any,
  infer U
>
  ? U
  : never;

/** The columns of a row, or the parameters of a function. */
export type RowObj = Record<string, TypeBuilder<any, any> | ColumnBuilder<any, any, ColumnMetadata<any>>>;
/** The fields of a product. */
export type ElementsObj = Record<string, TypeBuilder<any, any>>;
/** The alternatives of a sum. */
export type VariantsObj = Record<string, TypeBuilder<any, any>>;
export type SimpleVariantsObj = Record<string, UnitBuilder>;

/** The type of a builder, a row, or an object of columns. */
export type Infer<T> = T extends RowObj
  ? InferTypeOfRow<T>
  : T extends TypeBuilder<any, any>
    ? InferTypeOfTypeBuilder<T>
    : never;

export type CollapseColumn<T extends TypeBuilder<any, any> | ColumnBuilder<any, any, any>> =
  T extends ColumnBuilder<any, any, any> ? T["typeBuilder"] : T;

type OptionalRowKeys<T extends RowObj> = {
  [K in keyof T & string]-?: CollapseColumn<T[K]> extends OptionBuilder<any> ? K : never;
}[keyof T & string];

/** The TypeScript type of a row; columns that are options may be left out. */
export type InferTypeOfRow<T extends RowObj> = Prettify<
  {
    [K in Exclude<keyof T & string, OptionalRowKeys<T>>]: InferTypeOfTypeBuilder<CollapseColumn<T[K]>>;
  } & {
    [K in OptionalRowKeys<T>]?: InferTypeOfTypeBuilder<CollapseColumn<T[K]>>;
  }
>;

type OptionalParamKeys<T extends RowObj> = {
  [K in keyof T & string]-?: undefined extends InferTypeOfTypeBuilder<CollapseColumn<T[K]>> ? K : never;
}[keyof T & string];

/** The TypeScript type of an argument object. */
export type InferTypeOfParams<T extends RowObj> = Prettify<
  {
    [K in Exclude<keyof T & string, OptionalParamKeys<T>>]: InferTypeOfTypeBuilder<CollapseColumn<T[K]>>;
  } & {
    [K in OptionalParamKeys<T>]?: InferTypeOfTypeBuilder<CollapseColumn<T[K]>>;
  }
>;

export type InferSpacetimeTypeOfRow<T extends RowObj> = {
  [K in keyof T & string]: InferSpacetimeTypeOfTypeBuilder<CollapseColumn<T[K]>>;
};

export type ElementsArrayFromRowObj<Obj extends RowObj> = Array<
  {
    [N in keyof Obj & string]: {
      name: N;
      algebraicType: InferSpacetimeTypeOfTypeBuilder<CollapseColumn<Obj[N]>>;
    };
  }[keyof Obj & string]
>;

export type ElementsToProductType<Elements extends ElementsObj> = {
  tag: "Product";
  value: {
    elements: Array<
      {
        [N in keyof Elements & string]: {
          name: N;
          algebraicType: InferSpacetimeTypeOfTypeBuilder<Elements[N]>;
        };
      }[keyof Elements & string]
    >;
  };
};

export type VariantsToSumType<Variants extends VariantsObj> = {
  tag: "Sum";
  value: {
    variants: {
      name: keyof Variants & string;
      algebraicType: InferSpacetimeTypeOfTypeBuilder<Variants[keyof Variants & string]>;
    }[];
  };
};

export type RowType<Row extends RowObj> = {
  [K in keyof Row]: InferTypeOfTypeBuilder<CollapseColumn<Row[K]>>;
};

export type ObjectType<Elements extends ElementsObj> = {
  [K in keyof Elements]: InferTypeOfTypeBuilder<Elements[K]>;
};

type IsUnit<B> = B extends UnitBuilder ? true : false;

type EnumValue<K extends string, B extends TypeBuilder<any, any>> = IsUnit<B> extends true
  ? { tag: K }
  : { tag: K; value: InferTypeOfTypeBuilder<B> };

/** The TypeScript type of a sum: one `{ tag, value }` for each variant. */
export type EnumType<Variants extends VariantsObj> = {
  [K in keyof Variants & string]: EnumValue<K, Variants[K]>;
}[keyof Variants & string];

/** A value for each variant without content, and a function for each of the others. */
export type SumBuilderVariantConstructors<Variants extends VariantsObj> = {
  [K in keyof Variants & string]: IsUnit<Variants[K]> extends true
    ? EnumValue<K, Variants[K]>
    : (value: InferTypeOfTypeBuilder<Variants[K]>) => EnumValue<K, Variants[K]>;
};

/** A column, made of a column or of a bare type. */
export type CoerceColumn<Col extends TypeBuilder<any, any> | ColumnBuilder<any, any, any>> =
  Col extends TypeBuilder<infer T, infer U extends AlgebraicType>
    ? ColumnBuilder<T, U, ColumnMetadata<any>>
    : Col;

export type CoerceRow<Row extends RowObj> = { [k in keyof Row & string]: CoerceColumn<Row[k]> };
