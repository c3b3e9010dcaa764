// Line charts and bars as SVG, made of text. Colours are CSS variables (theme.ts), so that a page can be dark.

import { linearScale, logScale, type Scale, shortNumber } from "./scale";
import { type RunLine, styleOf } from "./series";

export type Percentile = "p50" | "p95" | "p99";

export interface LineChart {
  title: string;
  /** E.g. `transfers per second, log scale`. */
  subtitle: string;
  lines: RunLine[];
  value: (point: RunLine["points"][number]) => number;
  isLog: boolean;
}

export const chartWidth = 774;
const height = 340;
const margin = { top: 52, right: 250, bottom: 34, left: 52 };
const plotWidth = chartWidth - margin.left - margin.right;
const plotHeight = height - margin.top - margin.bottom;
/** Least distance between two labels at the ends of lines. */
const labelHeight = 13;

export const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

export const round = (value: number) => Math.round(value * 10) / 10;

export const lineOf = (kind: string, x1: number, x2: number, y1: number, y2: number): string =>
  `<line class="${kind}" x1="${x1}" x2="${x2}" y1="${y1}" y2="${y2}"/>`;

export const textOf = (kind: string, x: number, y: number, text: string, anchor?: "middle" | "end"): string =>
  `<text class="${kind}" x="${x}" y="${y}"${anchor ? ` text-anchor="${anchor}"` : ""}>${escapeXml(text)}</text>`;

export function lineChart(chart: LineChart): string {
  const { lines, value, isLog } = chart;
  const values = lines.flatMap((line) => line.points.map(value));
  const y = isLog ? logScale(values) : linearScale(values);
  const seconds = Math.max(1, ...lines.flatMap((line) => line.points.map((point) => point.tSec)));
  const placeX = (tSec: number) => margin.left + (tSec / seconds) * plotWidth;
  const placeY = (v: number) => margin.top + (1 - y.at(v)) * plotHeight;
  const warmups = [...new Set(lines.map((line) => line.warmupSec))].filter((sec) => sec > 0 && sec < seconds);
  const paths = lines.map((line) => {
    const { hue, dash } = styleOf(line.system);
    const points = line.points.filter((point) => !isLog || value(point) > 0);
    const at = points.map((point) => `${round(placeX(point.tSec))},${round(placeY(value(point)))}`);
    const attributes = `class="line hue${hue}${dash ? " dash" : ""}" data-name="${escapeXml(line.name)}"`;
    const [only] = at;
    if (at.length === 1 && only) {
      const [cx, cy] = only.split(",");
      return `<circle ${attributes} cx="${cx}" cy="${cy}" r="3"/>`;
    }
    return `<polyline ${attributes} points="${at.join(" ")}"/>`;
  });
  return svg(
    chart.title,
    [
      textOf("title", margin.left, 18, chart.title),
      textOf("subtitle", margin.left, 34, chart.subtitle),
      gridY(y, placeY),
      axisX(seconds, placeX),
      ...warmups.map((sec) => warmupLine(placeX(sec))),
      ...paths,
      endLabels(lines, value, placeY),
    ].join("\n"),
    height,
  );
}

const gridY = (scale: Scale, place: (value: number) => number): string =>
  scale.ticks
    .map(({ value, label, isMajor }) => {
      const y = round(place(value));
      const line = lineOf(isMajor ? "grid" : "grid minor", margin.left, margin.left + plotWidth, y, y);
      return label ? line + textOf("tick", margin.left - 6, y + 4, label, "end") : line;
    })
    .join("\n");

function axisX(seconds: number, place: (tSec: number) => number): string {
  const y = margin.top + plotHeight;
  const right = margin.left + plotWidth;
  const ticks = linearScale([seconds]).ticks.filter(({ value }) => value <= seconds + 1e-9);
  return [
    lineOf("axis", margin.left, right, y, y),
    ...ticks.map(({ value }) => textOf("tick", round(place(value)), y + 16, shortNumber(value), "middle")),
    textOf("tick", right + 8, y + 16, "seconds"),
  ].join("");
}

const warmupLine = (x: number) =>
  lineOf("warmup", round(x), round(x), margin.top, margin.top + plotHeight) +
  textOf("tick", round(x), margin.top - 3, "measured from here", "middle");

/** The names at the ends of the lines, moved apart where they would lie on each other: the legend, once per name. */
function endLabels(
  lines: readonly RunLine[],
  value: LineChart["value"],
  place: (value: number) => number,
): string {
  const labels = new Map<string, { line: RunLine; ys: number[] }>();
  for (const line of lines) {
    const last = line.points.at(-1);
    if (!last) continue;
    const label = labels.get(line.name) ?? { line, ys: [] };
    label.ys.push(place(value(last)));
    labels.set(line.name, label);
  }
  const placed = [...labels.values()]
    .map(({ line, ys }) => ({ line, y: ys.reduce((sum, y) => sum + y, 0) / ys.length }))
    .sort((a, b) => a.y - b.y);
  const bottom = margin.top + plotHeight;
  for (let i = 1; i < placed.length; i++)
    placed[i]!.y = Math.max(placed[i]!.y, placed[i - 1]!.y + labelHeight);
  // Too far down: push back up from the bottom.
  for (let i = placed.length - 1; i >= 0; i--) {
    const limit = i === placed.length - 1 ? bottom : placed[i + 1]!.y - labelHeight;
    placed[i]!.y = Math.min(placed[i]!.y, limit);
  }
  return placed
    .map(({ line, y }) => {
      const { hue, dash } = styleOf(line.system);
      const x = margin.left + plotWidth + 8;
      const mark = lineOf(`line hue${hue}${dash ? " dash" : ""}`, x, x + 12, round(y), round(y));
      const name = textOf("label", x + 16, round(y) + 4, line.name);
      return `<g data-name="${escapeXml(line.name)}">${mark}${name}</g>`;
    })
    .join("\n");
}

export interface Bar {
  name: string;
  /** Whose server it is: bars of one server have one colour. */
  server: string;
  system: string;
  /** The mean of the runs. */
  value: number;
  /** Half the length of the error bar. */
  error: number;
  text: string;
  note: string;
}

const barHeight = 24;
const barGap = 9;
const barLeft = 240;
const barRight = 170;

/** Horizontal bars from 0, the longest first, each with its value beside it. */
export function barChart(title: string, subtitles: readonly string[], bars: readonly Bar[]): string {
  const most = Math.max(1e-9, ...bars.map((bar) => bar.value + bar.error));
  const span = chartWidth - barLeft - barRight;
  const top = 24 + subtitles.length * 16;
  const total = top + bars.length * (barHeight + barGap) + 6;
  const rows = bars.map((bar, i) => {
    const y = top + i * (barHeight + barGap);
    const { hue } = styleOf(bar.system);
    const length = Math.max(1, (bar.value / most) * span);
    const middle = y + barHeight / 2;
    const from = barLeft + (Math.max(0, bar.value - bar.error) / most) * span;
    const to = barLeft + ((bar.value + bar.error) / most) * span;
    const error = bar.error > 0 ? lineOf("error", round(from), round(to), middle, middle) : "";
    const textAt = Math.max(barLeft + length, to) + 8;
    return [
      textOf("label", barLeft - 8, middle - 2, bar.name, "end"),
      textOf("note", barLeft - 8, middle + 10, bar.server, "end"),
      `<rect class="bar hue${hue}" x="${barLeft}" y="${y}" width="${round(length)}" height="${barHeight}" rx="2"/>`,
      error,
      `<text class="label strong" x="${round(textAt)}" y="${middle + 4}">${escapeXml(bar.text)}<tspan class="note" dx="6">${escapeXml(bar.note)}</tspan></text>`,
    ].join("");
  });
  const heading = [
    textOf("title", 8, 18, title),
    ...subtitles.map((text, i) => textOf("subtitle", 8, 34 + 16 * i, text)),
  ];
  return svg(title, [...heading, ...rows].join("\n"), total);
}

export const svg = (title: string, content: string, chartHeight: number) =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${chartWidth} ${chartHeight}" role="img" aria-label="${escapeXml(title)}">\n${content}\n</svg>`;
