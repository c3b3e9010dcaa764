// Axes: where values lie on a chart, and which are written beside it.

export interface Scale {
  /** Position of a value between 0 and 1. */
  at(value: number): number;
  ticks: { value: number; label: string; isMajor: boolean }[];
}

const powersOfTen = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));

/** 1200 is 1.2k. */
export function shortNumber(value: number): string {
  if (value >= 1e6) return `${trim(value / 1e6)}M`;
  if (value >= 1e3) return `${trim(value / 1e3)}k`;
  return trim(value);
}

const trim = (value: number) => String(Number(value.toPrecision(3)));

/** A logarithmic scale over whole decades; lines at 2 and 5 between them have labels where there is room. */
export function logScale(values: readonly number[]): Scale {
  const positive = values.filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(...(positive.length ? positive : [1]))) + 1e-9);
  const high = Math.max(
    low + 1,
    Math.ceil(Math.log10(Math.max(...(positive.length ? positive : [10]))) - 1e-9),
  );
  const decades = high - low;
  const ticks = powersOfTen(low, high).flatMap((power, i) =>
    [1, 2, 5]
      .filter((digit) => digit === 1 || i < decades)
      .map((digit) => ({
        value: digit * power,
        label: digit === 1 || decades <= 2 ? shortNumber(digit * power) : "",
        isMajor: digit === 1,
      })),
  );
  return { at: (value) => (Math.log10(Math.max(value, 10 ** low)) - low) / decades, ticks };
}

/** From 0 to a round number above the largest value, in about five steps. */
export function linearScale(values: readonly number[]): Scale {
  const most = Math.max(1e-9, ...values);
  const magnitude = 10 ** Math.floor(Math.log10(most / 5));
  const step =
    [1, 2, 5, 10].map((digit) => digit * magnitude).find((candidate) => most / candidate <= 6) ??
    magnitude * 10;
  const end = Math.ceil(most / step - 1e-9) * step;
  const ticks = Array.from({ length: Math.round(end / step) + 1 }, (_, i) => ({
    value: i * step,
    label: shortNumber(i * step),
    isMajor: true,
  }));
  return { at: (value) => value / end, ticks };
}
