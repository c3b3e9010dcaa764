// `pnpm run plot [file or directory ...]`: charts and a page of results that are there already.
//
//   --metric both|tps|latency   --percentile p50|p95|p99   --exclude <connectors>   --out <directory>   --png

import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { choice, UsageError } from "../config";
import type { RunFile } from "../core/result";
import { readRuns } from "../core/results";
import { packageDirectory } from "../init/commands";
import { readCommandLine, runProgram, type Usage } from "../program";
import { barsOf, type ChartOptions, chartsOf, htmlPage, originOf } from "./page";
import { findBrowser, writePng } from "./png";
import { summaryRows } from "./rows";
import { isOf, linesOf, loadsOf } from "./series";
import { chartStyle } from "./theme";

/** The runs that may be shown, and how many may not, since the machine was busy. */
export function idleRuns(paths: readonly string[]): { runs: RunFile[]; busy: number } {
  const files = readRuns(paths, false).flatMap(({ file }) => (file.schemaVersion === 1 ? [file] : []));
  const runs = files.filter(({ machineBusy }) => machineBusy === undefined);
  return { runs, busy: files.length - runs.length };
}

export async function plot(
  directory: string,
  files: readonly RunFile[],
  options: ChartOptions,
  wantsPng: boolean,
): Promise<string[]> {
  mkdirSync(directory, { recursive: true });
  const written: string[] = [];
  const browser = wantsPng ? await findBrowser() : undefined;
  if (wantsPng && !browser)
    throw new Error("no Chromium for pictures: install one (Debian package chromium) or set CHROME_BIN");
  const rows = summaryRows(files);
  const lines = linesOf(files);
  for (const load of loadsOf(lines)) {
    const charts = chartsOf(lines.filter(isOf(load)), options);
    if (charts.length === 0) continue;
    const of = join(directory, `bench-alpha${load.alpha}${load.inFlight === 1 ? "" : `-x${load.inFlight}`}`);
    const name = `${of}-${options.metric}-${options.percentile}`;
    charts.forEach((chart, i) => {
      const path = `${name}${charts.length > 1 ? `-${i + 1}` : ""}.svg`;
      writeFileSync(path, withStyle(chart));
      written.push(path);
    });
    if (!browser) continue;
    await writePng(browser, charts, `${name}.png`);
    const shown = rows.filter((row) => isOf(load)(row) && !options.exclude.includes(row.system));
    const bars = barsOf(shown, originOf(files));
    await writePng(browser, bars, `${of}-bars.png`);
    written.push(`${name}.png`, `${of}-bars.png`);
  }
  return written;
}

/** A chart as a file of its own has its colours inside. */
const withStyle = (chart: string) =>
  chart.replace(/<svg [^>]*>/, (tag) => `${tag}<style>${chartStyle}</style>`);

const usage: Usage = {
  name: "plot",
  words: "[...paths]",
  description: "charts of runs",
  options: [
    ["--metric <metric>", "both, tps or latency"],
    ["--percentile <percentile>", "p50, p95 or p99 (p99)"],
    ["--exclude <connectors>", "leave these out"],
    ["--out <directory>", "where the charts go (the directory of the runs)"],
    ["--png", "pictures too, by Chromium"],
  ],
};

runProgram(import.meta.filename, async () => {
  const commandLine = readCommandLine(usage);
  if (!commandLine) return 0;
  const { args, said } = commandLine;
  const chartOptions: ChartOptions = {
    metric: choice(["both", "tps", "latency"])(said, "metric") ?? "both",
    percentile: choice(["p50", "p95", "p99"])(said, "percentile") ?? "p99",
    exclude: said.list("exclude") ?? [],
  };
  const paths = args.length > 0 ? args.map((path) => resolve(path)) : [join(packageDirectory, "runs")];
  const { runs, busy } = idleRuns(paths);
  if (busy > 0) console.error(`${busy} runs left out: the machine was busy`);
  if (runs.length === 0) throw new UsageError(`no runs in ${paths.join(", ")}`);
  const directory = resolve(said.text("out") ?? join(packageDirectory, "runs"));
  const transfers = runs.filter(({ alpha }) => alpha !== null);
  const others = runs.filter(({ alpha }) => alpha === null);
  const written = await plot(directory, transfers, chartOptions, said.boolean("png") ?? false);
  for (const [name, chosen] of [["test-1.html", transfers] as const, ["workloads.html", others] as const]) {
    if (chosen.length === 0) continue;
    writeFileSync(join(directory, name), htmlPage(chosen, []));
    written.push(join(directory, name));
  }
  for (const path of written) console.log(path);
  return 0;
});
