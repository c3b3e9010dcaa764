// `pnpm run plot [file or directory ...]`: charts and a page of results that are there already.
//
//   --metric both|tps|latency   --percentile p50|p95|p99   --exclude <connectors>   --out <directory>   --png

import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import cac from "cac";
import { UsageError } from "../config";
import type { RunFile } from "../core/results";
import { packageDirectory } from "../init/commands";
import type { WorkloadFile } from "../workloads/results";
import { barsOf, type ChartOptions, chartsOf, htmlPage, originOf } from "./page";
import { findBrowser, writePng } from "./png";
import { isOf, linesOf, loadsOf } from "./series";
import { summaryRows } from "./summary";
import { chartStyle } from "./theme";
import { workloadPage } from "./workload_page";

/** The runs below these files and directories, those of test-1 and those of workloads; other JSON files are passed over. */
export function readRuns(paths: readonly string[]): {
  runs: RunFile[];
  workloads: WorkloadFile[];
  /** Runs that are left out, since the machine was busy. */
  busy: number;
} {
  const files = paths.flatMap((path) => {
    if (!existsSync(path)) throw new UsageError(`${path} is not there`);
    if (!statSync(path).isDirectory()) return [path];
    return readdirSync(path)
      .filter((name) => name.endsWith(".json"))
      .map((name) => join(path, name));
  });
  const runs: RunFile[] = [];
  const workloads: WorkloadFile[] = [];
  let busy = 0;
  for (const path of files) {
    const file = JSON.parse(readFileSync(path, "utf8")) as Partial<RunFile> | Partial<WorkloadFile>;
    if (file.schemaVersion !== 1 || file.results?.[0]?.res?.timeSeries === undefined) continue;
    if (file.machineBusy !== undefined) {
      busy++;
      continue;
    }
    // Workloads have no alpha.
    if (file.alpha === null) workloads.push(file as WorkloadFile);
    else runs.push(file as RunFile);
  }
  return { runs, workloads, busy };
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

async function main(): Promise<void> {
  const cli = cac("plot");
  const command = cli
    .command("[...paths]", "charts of runs")
    .option("--metric <metric>", "both, tps or latency")
    .option("--percentile <percentile>", "p50, p95 or p99 (p99)")
    .option("--exclude <connectors>", "leave these out")
    .option("--out <directory>", "where the charts go (the directory of the runs)")
    .option("--png", "pictures too, by Chromium");
  cli.help();
  const { args, options } = cli.parse(process.argv, { run: false });
  if (options["help"]) return;
  command.checkUnknownOptions();
  const choose = <T extends string>(name: string, choices: readonly T[], fallback: T): T => {
    const given = options[name];
    if (given === undefined) return fallback;
    const found = choices.find((choice) => choice === given);
    if (!found) throw new UsageError(`--${name} is ${choices.join(", ")}, not ${given}`);
    return found;
  };
  const chartOptions: ChartOptions = {
    metric: choose("metric", ["both", "tps", "latency"], "both"),
    percentile: choose("percentile", ["p50", "p95", "p99"], "p99"),
    exclude: options["exclude"] === undefined ? [] : String(options["exclude"]).split(","),
  };
  const paths = args.length > 0 ? args.map((path) => resolve(path)) : [join(packageDirectory, "runs")];
  const { runs, workloads, busy } = readRuns(paths);
  if (busy > 0) console.error(`${busy} runs left out: the machine was busy`);
  if (runs.length + workloads.length === 0) throw new UsageError(`no runs in ${paths.join(", ")}`);
  const directory = resolve(
    options["out"] === undefined ? join(packageDirectory, "runs") : String(options["out"]),
  );
  const written = runs.length > 0 ? await plot(directory, runs, chartOptions, options["png"] === true) : [];
  mkdirSync(directory, { recursive: true });
  const pages = {
    "test-1.html": runs.length > 0 ? htmlPage("test-1", runs, []) : undefined,
    "workloads.html": workloads.length > 0 ? workloadPage(workloads, []) : undefined,
  };
  for (const [name, text] of Object.entries(pages)) {
    if (text === undefined) continue;
    writeFileSync(join(directory, name), text);
    written.push(join(directory, name));
  }
  for (const path of written) console.log(path);
}

if (process.argv[1] === import.meta.filename) {
  main().catch((error: unknown) => {
    console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  });
}
