// `pnpm run drift`: draws docs/images/drift.svg from all that the gate has recorded in bench/results/gate.
//
// Each recorded gate compares two commits; their ratios multiplied, in order of time, say where the server is against the first
// of the commits. Bars are the 95 % intervals of the gates alone.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { repositoryDirectory } from "../init/commands";
import { runProgram } from "../program";
import { escapeXml } from "./chart";
import { hueCount } from "./series";
import { chartStyle } from "./theme";

export interface RecordedGate {
  timestamp: string;
  base: string;
  head: string;
  rows: { system: string; load: string; metric: string; slowdownPct: number; noisePct: number }[];
}

export interface DriftPoint {
  /** Which of the gates. */
  gate: number;
  /** Against the first commit, and the interval that the last gate alone leaves. */
  ratio: number;
  low: number;
  high: number;
}

export interface DriftLine {
  name: string;
  points: DriftPoint[];
}

const metric = "server CPU";

export function driftOf(gates: readonly RecordedGate[]): DriftLine[] {
  const lines = new Map<string, DriftLine>();
  gates.forEach(({ rows }, gate) => {
    for (const row of rows.filter((row) => row.metric === metric)) {
      const name = `${row.load} ${row.system}`;
      const line = lines.get(name) ?? { name, points: [] };
      lines.set(name, line);
      const before = line.points.at(-1)?.ratio ?? 1;
      const ratio = before * (1 + row.slowdownPct / 100);
      const noise = 1 + row.noisePct / 100;
      line.points.push({ gate, ratio, low: ratio / noise, high: ratio * noise });
    }
  });
  return [...lines.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

const width = 774;
const height = 340;
const margin = { top: 52, right: 215, bottom: 44, left: 52 };
const plotWidth = width - margin.left - margin.right;
const plotHeight = height - margin.top - margin.bottom;
const labelHeight = 15;
const round = (value: number) => Math.round(value * 10) / 10;

export function driftChart(gates: readonly RecordedGate[]): string {
  const lines = driftOf(gates);
  const most = Math.max(1, ...lines.flatMap(({ points }) => points.map(({ high }) => high)));
  const top = Math.ceil(most * 5 + 0.25) / 5;
  const x = (gate: number) => margin.left + ((gate + 1) / gates.length) * plotWidth;
  const y = (ratio: number) => round(margin.top + (1 - ratio / top) * plotHeight);
  const grid = Array.from({ length: Math.round(top * 5) + 1 }, (_, i) => i / 5).map(
    (ratio) =>
      `<line class="${ratio === 1 ? "axis" : "grid"}" x1="${margin.left}" x2="${margin.left + plotWidth}" y1="${y(ratio)}" y2="${y(ratio)}"/>` +
      `<text class="tick" x="${margin.left - 6}" y="${y(ratio) + 4}" text-anchor="end">${ratio.toFixed(1)}</text>`,
  );
  const commits = [gates[0]?.base ?? "", ...gates.map(({ head }) => head)].map(
    (commit, i) =>
      `<text class="tick" x="${round(x(i - 1))}" y="${margin.top + plotHeight + 16}" text-anchor="middle">${escapeXml(commit.slice(0, 8))}</text>`,
  );
  const drawn = lines.map(({ points }, i) => {
    const hue = i % hueCount;
    const dash = i >= hueCount ? " dash" : "";
    const [first] = points;
    const start = first ? [`${round(x(first.gate - 1))},${y(1)}`] : [];
    const at = points.map(({ gate, ratio }) => `${round(x(gate))},${y(ratio)}`);
    const bars = points.map(
      ({ gate, low, high }) =>
        `<line class="line hue${hue}" x1="${round(x(gate))}" x2="${round(x(gate))}" y1="${y(low)}" y2="${y(high)}"/>`,
    );
    return `<polyline class="line hue${hue}${dash}" points="${[...start, ...at].join(" ")}"/>${bars.join("")}`;
  });
  const legend = lines.map(({ name, points }, i) => {
    const place = margin.top + i * labelHeight;
    const left = margin.left + plotWidth + 14;
    const text = `${name}: ${(points.at(-1)?.ratio ?? 1).toFixed(2)}`;
    return (
      `<line class="line hue${i % hueCount}" x1="${left}" x2="${left + 12}" y1="${place}" y2="${place}"/>` +
      `<text class="label" x="${left + 16}" y="${place + 4}">${escapeXml(text)}</text>`
    );
  });
  const title = "Server CPU per operation, gate by gate";
  const subtitle = `${gates[0]?.base.slice(0, 8) ?? ""} is 1; connections x calls under way; lower is better`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">`,
    `<style>${chartStyle}</style><rect width="100%" height="100%" fill="#fff"/>`,
    `<text class="title" x="${margin.left}" y="18">${title}</text>`,
    `<text class="subtitle" x="${margin.left}" y="34">${escapeXml(subtitle)}</text>`,
    ...[...grid, ...commits, ...drawn, ...legend],
    "</svg>\n",
  ].join("\n");
}

/** All gates that were recorded, the first one first. */
export function recordedGates(directory: string): RecordedGate[] {
  const files = readdirSync(directory).filter((name) => name.endsWith(".json"));
  const read = (name: string) => JSON.parse(readFileSync(join(directory, name), "utf8")) as RecordedGate;
  return files.map(read).sort((a, b) => (a.timestamp < b.timestamp ? -1 : 1));
}

runProgram(import.meta.filename, async () => {
  const path = join(repositoryDirectory, "docs/images/drift.svg");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, driftChart(recordedGates(join(repositoryDirectory, "bench/results/gate"))));
  console.log(path);
  return 0;
});
