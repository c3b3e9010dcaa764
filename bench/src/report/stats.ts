// `pnpm run stats [directory]`: figures of all runs of test-1 as a table of tabs, `stats.tsv` (section 6.3).
//
//   --warmup-sec N   where the steady state begins (30)      --tail-sec N   length of the tail (30)

import { readdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import cac from "cac";
import { UsageError } from "../config";
import type { RunFile } from "../core/result";
import { readRuns } from "../core/results";
import { collapseAt, deathAt, rangeStatistics } from "../core/statistics";
import { packageDirectory } from "../init/commands";

const columns = [
  ...["system", "alpha", "duration_s", "concurrency"],
  ...["agg_tps", "agg_samples", "agg_p50_ms", "agg_p95_ms", "agg_p99_ms", "agg_collision_rate"],
  ...[
    "ss_tps_mean",
    "ss_tps_median",
    "ss_tps_stdev",
    "ss_tps_cv_pct",
    "ss_p50_ms",
    "ss_p99_ms",
    "ss_zero_secs",
  ],
  ...["tail_tps_mean", "tail_p50_ms", "tail_p99_ms", "ts_tps_min", "ts_tps_max", "ts_p99_max"],
  ...["collapse_at_s", "death_at_s", "file"],
] as const;

type Row = Record<(typeof columns)[number], string>;

/** One decimal from 100 on, two from 1 on, else four; nothing for what is missing. */
export function formatFloat(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  return value.toFixed(Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 1 ? 2 : 4);
}

function rowOf(name: string, file: RunFile, warmupSec: number, tailSec: number): Row {
  const { system, res } = file.results[0];
  const series = res.timeSeries;
  const steady = rangeStatistics(series, warmupSec);
  const tail = rangeStatistics(series, file.seconds - tailSec);
  const all = rangeStatistics(series);
  const ofSteady = (value: number) => (steady.duration_s === 0 ? "" : formatFloat(value));
  const ofTail = (value: number) => (tail.duration_s === 0 ? "" : formatFloat(value));
  return {
    system,
    alpha: String(file.alpha),
    duration_s: String(all.duration_s),
    concurrency: String(file.concurrency),
    agg_tps: formatFloat(res.tps),
    agg_samples: String(res.samples),
    agg_p50_ms: formatFloat(res.p50_ms),
    agg_p95_ms: formatFloat(res.p95_ms),
    agg_p99_ms: formatFloat(res.p99_ms),
    agg_collision_rate: formatFloat(res.collision_rate),
    ss_tps_mean: ofSteady(steady.tps_mean),
    ss_tps_median: ofSteady(steady.tps_median),
    ss_tps_stdev: ofSteady(steady.tps_stdev),
    ss_tps_cv_pct: ofSteady(steady.tps_cv_pct),
    ss_p50_ms: ofSteady(steady.p50_ms),
    ss_p99_ms: ofSteady(steady.p99_ms),
    ss_zero_secs: steady.duration_s === 0 ? "" : String(steady.zero_seconds),
    tail_tps_mean: ofTail(tail.tps_mean),
    tail_p50_ms: ofTail(tail.p50_ms),
    tail_p99_ms: ofTail(tail.p99_ms),
    ts_tps_min: formatFloat(all.tps_min),
    ts_tps_max: formatFloat(all.tps_max),
    ts_p99_max: formatFloat(all.p99_ms_max),
    collapse_at_s: formatFloat(collapseAt(series)),
    death_at_s: formatFloat(deathAt(series)),
    file: name,
  };
}

/** The table of these files, sorted by alpha and system. */
export function statsTable(
  files: readonly { name: string; file: RunFile }[],
  warmupSec = 30,
  tailSec = 30,
): string {
  const order = [...files].sort(
    (a, b) =>
      a.file.alpha! - b.file.alpha! ||
      a.file.results[0].system.localeCompare(b.file.results[0].system) ||
      a.name.localeCompare(b.name),
  );
  const rows = order.map(({ name, file }) => rowOf(name, file, warmupSec, tailSec));
  const lines = [columns.join("\t"), ...rows.map((row) => columns.map((column) => row[column]).join("\t"))];
  return `${lines.join("\n")}\n`;
}

/** The runs of test-1 in a directory. Also those of the published suite, which have only its keys. */
const transfersOf = (directory: string): { name: string; file: RunFile }[] =>
  readRuns(
    readdirSync(directory)
      .filter((name) => name.startsWith("test-1-") && name.endsWith(".json"))
      .sort()
      .map((name) => join(directory, name)),
    false,
  ).map(({ path, file }) => ({ name: basename(path), file }));

function main(): void {
  const cli = cac("stats");
  const command = cli
    .command("[directory]", "figures of all runs of test-1")
    .option("--warmup-sec <n>", "where the steady state begins (30)")
    .option("--tail-sec <n>", "length of the tail (30)");
  cli.help();
  const { args, options } = cli.parse(process.argv, { run: false });
  if (options["help"]) return;
  command.checkUnknownOptions();
  const number = (name: string) => {
    const value = Number(options[name] ?? 30);
    if (!Number.isFinite(value)) throw new UsageError(`invalid number '${options[name]}'`);
    return value;
  };
  const directory = resolve(args[0] ?? join(packageDirectory, "runs"));
  const files = transfersOf(directory);
  if (files.length === 0) throw new UsageError(`no runs of test-1 in ${directory}`);
  const path = join(directory, "stats.tsv");
  writeFileSync(path, statsTable(files, number("warmupSec"), number("tailSec")));
  console.log(path);
}

if (process.argv[1] === import.meta.filename) {
  try {
    main();
  } catch (error) {
    console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
}
