// `pnpm run drift`: draws docs/images/drift.svg from all that the gate has recorded in bench/results/gate.
//
// Each recorded gate compares two commits; their ratios multiplied, in order of time, say where the server is against the first
// of the commits. Bars are the 95 % intervals of the gates alone.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { repositoryDirectory } from "../init/commands";
import { runProgram } from "../program";
import { chartWidth, lineOf, round, svg, textOf } from "./chart";
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

const margin = { top: 52, right: 215, bottom: 44, left: 52 };
const height = 340;
const plotWidth = chartWidth - margin.left - margin.right;
const plotHeight = height - margin.top - margin.bottom;
const legendHeight = 15;

export function driftChart(gates: readonly RecordedGate[]): string {
  const lines = driftOf(gates);
  const most = Math.max(1, ...lines.flatMap(({ points }) => points.map(({ high }) => high)));
  const top = Math.ceil(most * 5 + 0.25) / 5;
  const right = margin.left + plotWidth;
  const x = (gate: number) => round(margin.left + ((gate + 1) / gates.length) * plotWidth);
  const y = (ratio: number) => round(margin.top + (1 - ratio / top) * plotHeight);
  const ratios = Array.from({ length: Math.round(top * 5) + 1 }, (_, i) => i / 5);
  const grid = ratios.map(
    (ratio) =>
      lineOf(ratio === 1 ? "axis" : "grid", margin.left, right, y(ratio), y(ratio)) +
      textOf("tick", margin.left - 6, y(ratio) + 4, ratio.toFixed(1), "end"),
  );
  const commits = [gates[0]?.base ?? "", ...gates.map(({ head }) => head)].map((commit, i) =>
    textOf("tick", x(i - 1), margin.top + plotHeight + 16, commit.slice(0, 8), "middle"),
  );
  const drawn = lines.map(({ points }, i) => {
    const hue = `line hue${i % hueCount}`;
    const [first] = points;
    const start = first ? [`${x(first.gate - 1)},${y(1)}`] : [];
    const at = points.map(({ gate, ratio }) => `${x(gate)},${y(ratio)}`);
    const bars = points.map(({ gate, low, high }) => lineOf(hue, x(gate), x(gate), y(low), y(high)));
    const dash = i >= hueCount ? " dash" : "";
    return `<polyline class="${hue}${dash}" points="${[...start, ...at].join(" ")}"/>${bars.join("")}`;
  });
  const legend = lines.map(({ name, points }, i) => {
    const place = margin.top + i * legendHeight;
    const text = `${name}: ${(points.at(-1)?.ratio ?? 1).toFixed(2)}`;
    return (
      lineOf(`line hue${i % hueCount}`, right + 14, right + 26, place, place) +
      textOf("label", right + 30, place + 4, text)
    );
  });
  const title = "Server CPU per operation, gate by gate";
  const subtitle = `${gates[0]?.base.slice(0, 8) ?? ""} is 1; connections x calls under way; lower is better`;
  const parts = [
    `<style>${chartStyle}</style><rect width="100%" height="100%" fill="#fff"/>`,
    textOf("title", margin.left, 18, title),
    textOf("subtitle", margin.left, 34, subtitle),
    ...[...grid, ...commits, ...drawn, ...legend],
  ];
  return `${svg(title, parts.join("\n"), height)}\n`;
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
