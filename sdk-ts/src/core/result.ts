import type { AlgebraicTypeType } from "./type_tree";

/** The algebraic type of `Result`. */
export type ResultAlgebraicType<
  T extends AlgebraicTypeType = AlgebraicTypeType,
  E extends AlgebraicTypeType = AlgebraicTypeType,
> = {
  tag: "Sum";
  value: { variants: [{ name: "ok"; algebraicType: T }, { name: "err"; algebraicType: E }] };
};

/** One of two outcomes: `{ ok: T }` or `{ err: E }`. */
export const Result = {
  getAlgebraicType<
    T extends AlgebraicTypeType = AlgebraicTypeType,
    E extends AlgebraicTypeType = AlgebraicTypeType,
  >(okType: T, errType: E): ResultAlgebraicType<T, E> {
    const ok = { name: "ok", algebraicType: okType } as const;
    const err = { name: "err", algebraicType: errType } as const;
    return { tag: "Sum", value: { variants: [ok, err] } };
  },
};
