import type { AlgebraicTypeType } from "./type_tree";

/** The algebraic type of `Option`. */
export type OptionAlgebraicType<T extends AlgebraicTypeType = AlgebraicTypeType> = {
  tag: "Sum";
  value: {
    variants: [
      { name: "some"; algebraicType: T },
      { name: "none"; algebraicType: { tag: "Product"; value: { elements: [] } } },
    ];
  };
};

/** A value that may be missing: `T | undefined`. */
export const Option = {
  getAlgebraicType<T extends AlgebraicTypeType = AlgebraicTypeType>(innerType: T): OptionAlgebraicType<T> {
    return {
      tag: "Sum",
      value: {
        variants: [
          { name: "some", algebraicType: innerType },
          { name: "none", algebraicType: { tag: "Product", value: { elements: [] } } },
        ],
      },
    };
  },
};
