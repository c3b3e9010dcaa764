import type { AlgebraicType } from "./algebraic_type";

/** The algebraic type of `Result`. */
export type ResultAlgebraicType<
  T extends AlgebraicType = AlgebraicType,
  E extends AlgebraicType = AlgebraicType,
> = {
  tag: "Sum";
  value: { variants: [{ name: "ok"; algebraicType: T }, { name: "err"; algebraicType: E }] };
};

/** One of two outcomes: `{ ok: T }` or `{ err: E }`. */
export const Result = {
  getAlgebraicType<T extends AlgebraicType = AlgebraicType, E extends AlgebraicType = AlgebraicType>(
    okType: T,
    errType: E,
  ): ResultAlgebraicType<T, E> {
    const ok = { name: "ok", algebraicType: okType } as const;
    const err = { name: "err", algebraicType: errType } as const;
    return { tag: "Sum", value: { variants: [ok, err] } };
  },
};
