// The frame of every page: style, the little script, and the line about the machine.

import type { Hardware } from "../core/result";
import { escapeXml } from "./chart";
import { formatBytes } from "./format";
import { chartStyle, darkStyle } from "./theme";

export const page = (title: string, body: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeXml(title)}</title>
<style>${chartStyle}${darkStyle}
body { margin: 0 auto; padding: 24px; max-width: 1440px; background: var(--page); color: var(--ink);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 36px 0 8px; }
h3 { font-size: 14px; margin: 16px 0 4px; }
p, li { max-width: 78ch; } .soft { color: var(--soft); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 560px), 1fr)); gap: 16px; }
.charts figure { margin: 0; padding: 12px; background: var(--card); border-radius: 8px; }
.charts svg { width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: 4px 8px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 500; vertical-align: bottom; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
td.text { color: var(--soft); }
tr.invalid td { color: var(--soft); }
svg [data-name] { cursor: default; } svg.picking [data-name]:not(.picked) { opacity: .15; }
</style>
</head>
<body>
${body}
<script>
// Pointing at a name or a line shows it alone.
for (const svg of document.querySelectorAll("svg")) {
  svg.addEventListener("pointerover", (event) => {
    const name = event.target.closest("[data-name]")?.dataset.name;
    for (const other of document.querySelectorAll("svg")) {
      const parts = [...other.querySelectorAll("[data-name]")];
      const has = name !== undefined && parts.some((part) => part.dataset.name === name);
      other.classList.toggle("picking", has);
      for (const part of parts) part.classList.toggle("picked", part.dataset.name === name);
    }
  });
}
</script>
</body>
</html>
`;

export const machineOf = (hardware: Hardware) =>
  `${hardware.hardwareThreads} × ${hardware.cpu}, ${formatBytes(hardware.ramBytes)} memory, ${hardware.distribution}, ` +
  `kernel ${hardware.kernel}, ${hardware.virtualization}, ${hardware.fileSystem}; a sync of 4 KiB takes ` +
  `${hardware.fdatasync_p50_us} µs (p99 ${hardware.fdatasync_p99_us} µs); load average at start ${hardware.loadAverage1.toFixed(2)}`;
