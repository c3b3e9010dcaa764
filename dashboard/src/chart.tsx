// Lines over time, drawn as SVG. Each chart has its last values as text, for those who do not see it.

import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { bytes, clock, Tabs, whole } from "./ui";

export interface Series {
  name: string;
  /** undefined: nothing was measured then. */
  values: (number | undefined)[];
  tone?: number;
}

/** Points that are drawn; more are thinned, the largest of each group stays. */
const POINTS_MAX = 240;

export interface ChartProps {
  title: string;
  times: number[];
  series: Series[];
  format: (value: number) => string;
  height?: number;
  /** Text for a place on the x axis; times of day if absent. */
  at?: (index: number) => string;
  isBars?: boolean;
}

function thin(props: ChartProps): { times: number[]; series: Series[] } {
  const size = Math.ceil(props.times.length / POINTS_MAX);
  if (size <= 1) return props;
  const groups = Array.from({ length: Math.ceil(props.times.length / size) }, (_, at) => at * size);
  const series = props.series.map((one) => ({
    ...one,
    values: groups.map((from) => {
      const known = one.values.slice(from, from + size).filter((value) => value !== undefined);
      return known.length === 0 ? undefined : Math.max(...known);
    }),
  }));
  return { times: groups.map((from) => props.times[Math.min(from + size, props.times.length) - 1]!), series };
}

/** A round number that is no less, of which half is round too. */
function roundUp(value: number, format: (value: number) => string): number {
  if (format === whole)
    return value <= 2 ? 2 : value < 10 ? Math.ceil(value / 2) * 2 : roundUp(value, String);
  if (value <= 0) return 1;
  if (format === bytes) {
    const unit = 1024 ** Math.floor(Math.log2(Math.max(1, value)) / 10);
    return roundUp(value / unit, String) * unit;
  }
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 3, 4, 5, 6, 8, 10].find((one) => one * power >= value * 0.9999)!;
  return step * power;
}

export function Chart(props: ChartProps): ReactNode {
  const id = useId();
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(480);
  const [pointed, setPointed] = useState<number>();
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) =>
      setWidth(Math.max(160, Math.floor(entry!.contentRect.width))),
    );
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, []);
  const { times, series } = thin(props);
  const height = props.height ?? 120;
  const [left, bottom, top] = [52, 18, 8];
  const all = series.flatMap(({ values }) => values.filter((value) => value !== undefined));
  const low = Math.min(0, ...all);
  const high = roundUp(Math.max(...all, 0), props.format);
  const x = (at: number) => left + (times.length < 2 ? 0.5 : at / (times.length - 1)) * (width - left - 8);
  const y = (value: number) => top + (1 - (value - low) / (high - low || 1)) * (height - top - bottom);
  const label = props.at ?? ((at: number) => clock(times[at] ?? 0));
  const step = (width - left - 8) / Math.max(1, times.length);
  // A bar has its own label where there is room for some letters.
  const isLabelled = props.isBars && step > 48;
  const shown = pointed !== undefined && pointed < times.length ? pointed : times.length - 1;
  const point = (clientX: number) => {
    const box = frame.current!.getBoundingClientRect();
    const part = (clientX - box.left - left) / (width - left - 8);
    setPointed(Math.max(0, Math.min(times.length - 1, Math.round(part * (times.length - 1)))));
  };
  return (
    <figure className="chart" aria-labelledby={id}>
      <figcaption>
        <span id={id} className="chart-title">
          {props.title}
        </span>
        <span className="legend">
          {series.map((one, at) => (
            <span key={one.name} className={`key tone-${one.tone ?? at}`}>
              {series.length > 1 && <span className="key-name">{one.name}</span>}
              <output>{one.values[shown] === undefined ? "–" : props.format(one.values[shown]!)}</output>
            </span>
          ))}
        </span>
      </figcaption>
      <div
        ref={frame}
        className="chart-frame"
        onPointerMove={(event) => point(event.clientX)}
        onPointerLeave={() => setPointed(undefined)}
      >
        <svg width={width} height={height} aria-hidden="true" focusable="false">
          {[0, 0.5, 1].map((part) => {
            const value = low + (high - low) * part;
            return (
              <g key={part}>
                <line className="grid-line" x1={left} x2={width - 8} y1={y(value)} y2={y(value)} />
                <text className="axis" x={left - 8} y={y(value) + 3.5} textAnchor="end">
                  {props.format(value)}
                </text>
              </g>
            );
          })}
          {isLabelled &&
            times.map((time, at) => (
              <text
                key={time}
                className="axis"
                x={left + (at + 0.5) * step}
                y={height - 3}
                textAnchor="middle"
              >
                {label(at).slice(0, Math.floor(step / 6))}
              </text>
            ))}
          {times.length > 1 && !isLabelled && (
            <>
              <text className="axis" x={left} y={height - 3}>
                {label(0)}
              </text>
              <text className="axis" x={width - 8} y={height - 3} textAnchor="end">
                {label(times.length - 1)}
              </text>
            </>
          )}
          {series.map((one, at) =>
            props.isBars ? (
              <g key={one.name} className={`bars tone-${one.tone ?? at}`}>
                {one.values.map((value, index) => {
                  const size = Math.max(1, (((width - left - 8) / times.length) * 0.7) / series.length);
                  const from = left + ((index + 0.15) * (width - left - 8)) / times.length + at * size;
                  const end = y(value ?? 0);
                  return (
                    <rect
                      key={index}
                      x={from}
                      y={Math.min(end, y(0))}
                      width={size}
                      height={Math.abs(y(0) - end)}
                    />
                  );
                })}
              </g>
            ) : (
              <g key={one.name} className={`line tone-${one.tone ?? at}`}>
                <path className="area" d={area(one.values, x, y, low)} />
                <path d={line(one.values, x, y)} />
              </g>
            ),
          )}
          {pointed !== undefined && times.length > 1 && !props.isBars && (
            <line className="cursor" x1={x(shown)} x2={x(shown)} y1={top} y2={height - bottom} />
          )}
        </svg>
        {pointed !== undefined && times.length > 1 && <span className="chart-time">{label(shown)}</span>}
        {all.length === 0 && <span className="chart-empty">no data yet</span>}
      </div>
    </figure>
  );
}

type Scale = (value: number) => number;

function line(values: (number | undefined)[], x: Scale, y: Scale): string {
  let path = "";
  let isOpen = false;
  for (const [at, value] of values.entries()) {
    if (value === undefined) {
      isOpen = false;
      continue;
    }
    // One point between gaps is a dot.
    const isAlone = !isOpen && values[at + 1] === undefined;
    path += `${isOpen ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}${isAlone ? "h.01" : ""}`;
    isOpen = true;
  }
  return path;
}

function area(values: (number | undefined)[], x: Scale, y: Scale, low: number): string {
  let path = "";
  let from: number | undefined;
  for (let at = 0; at <= values.length; at++) {
    const value = values[at];
    if (value !== undefined) {
      if (from === undefined) path += `M${x(at).toFixed(1)} ${y(low).toFixed(1)}`;
      path += `L${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
      from ??= at;
    } else if (from !== undefined) {
      path += `L${x(at - 1).toFixed(1)} ${y(low).toFixed(1)}Z`;
      from = undefined;
    }
  }
  return path;
}

/** A line without axes, for rows of lists. */
export function Spark({ values }: { values: number[] }): ReactNode {
  const last = values.slice(-60);
  const high = Math.max(...last, 0.001);
  const x: Scale = (at) => (at / Math.max(1, last.length - 1)) * 96;
  const y: Scale = (value) => 21 - (value / high) * 19;
  return (
    <svg className="spark line tone-0" width="96" height="22" aria-hidden="true" focusable="false">
      {last.length > 1 && <path className="area" d={area(last, x, y, 0)} />}
      {last.length > 1 && <path d={line(last, x, y)} />}
    </svg>
  );
}

/** A line of a chart: its name, its value at a point, and its tone if that is not the one of its place. */
type Line<Point> = [name: string, value: (point: Point) => number | undefined, tone?: number];

/** Charts of the same points: the title of each, how its values are written, its lines. */
export function Charts<Point extends { at: number }>(props: {
  points: Point[];
  charts: [title: string, format: (value: number) => string, ...lines: Line<Point>[]][];
}): ReactNode {
  const times = props.points.map((point) => point.at);
  return (
    <div className="charts">
      {props.charts.map(([title, format, ...lines]) => (
        <Chart
          key={title}
          title={title}
          times={times}
          format={format}
          series={lines.map(([name, value, tone], at) => ({
            name,
            values: props.points.map(value),
            tone: tone ?? at,
          }))}
        />
      ))}
    </div>
  );
}

export type Span = "fine" | "coarse";

/** How far back charts go. */
export function SpanTabs(props: { now: Span; onChange: (span: Span) => void }): ReactNode {
  return (
    <Tabs
      label="Span"
      tabs={[
        { name: "fine", text: "15 minutes" },
        { name: "coarse", text: "6 hours" },
      ]}
      now={props.now}
      onChange={props.onChange}
    />
  );
}
