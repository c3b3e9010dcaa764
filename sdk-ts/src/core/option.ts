import type { AlgebraicType } from "./algebraic_type";

/** The algebraic type of `Option`. */
export type OptionAlgebraicType<T extends AlgebraicType = AlgebraicType> = {
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
  getAlgebraicType<T extends AlgebraicType = AlgebraicType>(innerType: T): OptionAlgebraicType<T> {
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
