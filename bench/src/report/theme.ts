// Colours and type of the charts and pages, light and dark.

import { hueCount } from "./series";

const lightHues = ["#0b57d0", "#d1480f", "#0f7b4f", "#9a5b00", "#6f42c1", "#00798c", "#c2185b", "#57606a"];
const darkHues = ["#7cacf8", "#ff9466", "#54c89a", "#e0a54a", "#b79cf0", "#4fc3d6", "#f48fb1", "#adb5bd"];

const light = {
  page: "#ffffff",
  ink: "#1b1f24",
  soft: "#59636e",
  line: "#e4e7eb",
  minor: "#f1f3f5",
  card: "#f7f8fa",
};
const dark = {
  page: "#14171a",
  ink: "#e8eaed",
  soft: "#9aa4af",
  line: "#2f353c",
  minor: "#22272c",
  card: "#1b1f24",
};

const variables = (palette: typeof light, hues: readonly string[]) =>
  [
    ...Object.entries(palette).map(([name, colour]) => `--${name}: ${colour};`),
    ...hues.slice(0, hueCount).map((colour, i) => `--hue${i}: ${colour};`),
  ].join(" ");

const hueClasses = Array.from(
  { length: hueCount },
  (_, i) =>
    `.line.hue${i} { stroke: var(--hue${i}); } circle.hue${i}, .bar.hue${i} { fill: var(--hue${i}); }`,
).join("\n");

export const chartStyle = `
:root { ${variables(light, lightHues)} }
svg { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
svg text { fill: var(--ink); font-size: 11px; font-variant-numeric: tabular-nums; }
svg .title { font-size: 14px; font-weight: 600; }
svg .subtitle, svg .tick, svg .note { fill: var(--soft); }
svg .note { font-weight: 400; }
svg .strong { font-weight: 600; }
svg .grid { stroke: var(--line); } svg .minor { stroke: var(--minor); }
svg .axis { stroke: var(--soft); }
svg .warmup { stroke: var(--soft); stroke-dasharray: 2 3; }
svg .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
svg .dash { stroke-dasharray: 5 3; }
svg .error { stroke: var(--ink); stroke-width: 1.5; }
${hueClasses}
`;

export const darkStyle = `@media (prefers-color-scheme: dark) { :root { ${variables(dark, darkHues)} } }`;
