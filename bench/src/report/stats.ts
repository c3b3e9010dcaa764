// `pnpm run stats [directory]`: figures of all runs of test-1 as a table of tabs, `stats.tsv` (section 6.3).
//
//   --warmup-sec N   where the steady state begins (30)      --tail-sec N   length of the tail (30)

import { readdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { UsageError } from "../config";
import type { RangeStatistics, RunFile } from "../core/result";
import { readRuns } from "../core/results";
import { collapseAt, deathAt, rangeStatistics } from "../core/statistics";
import { packageDirectory } from "../init/commands";
import { readCommandLine, runProgram, type Usage } from "../program";

/** One decimal from 100 on, two from 1 on, else four; nothing for what is missing. */
export function formatFloat(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  return value.toFixed(Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 1 ? 2 : 4);
}

function rowOf(name: string, file: RunFile, warmupSec: number, tailSec: number): Record<string, string> {
  const { system, res } = file.results[0];
  const series = res.timeSeries;
  const steady = rangeStatistics(series, warmupSec);
  const tail = rangeStatistics(series, file.seconds - tailSec);
  const all = rangeStatistics(series);
  const ofRange = (prefix: string, range: RangeStatistics, names: (keyof RangeStatistics)[]) =>
    Object.fromEntries(
      names.map((name) => [`${prefix}_${name}`, range.duration_s === 0 ? "" : formatFloat(range[name])]),
    );
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
    ...ofRange("ss", steady, ["tps_mean", "tps_median", "tps_stdev", "tps_cv_pct", "p50_ms", "p99_ms"]),
    ss_zero_secs: steady.duration_s === 0 ? "" : String(steady.zero_seconds),
    ...ofRange("tail", tail, ["tps_mean", "p50_ms", "p99_ms"]),
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
  const lines = [Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row))].map((cells) =>
    cells.join("\t"),
  );
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

const usage: Usage = {
  name: "stats",
  words: "[directory]",
  description: "figures of all runs of test-1",
  options: [
    ["--warmup-sec <n>", "where the steady state begins (30)"],
    ["--tail-sec <n>", "length of the tail (30)"],
  ],
};

runProgram(import.meta.filename, async () => {
  const commandLine = readCommandLine(usage);
  if (!commandLine) return 0;
  const { args, said } = commandLine;
  const directory = resolve(args[0] ?? join(packageDirectory, "runs"));
  const files = transfersOf(directory);
  if (files.length === 0) throw new UsageError(`no runs of test-1 in ${directory}`);
  const path = join(directory, "stats.tsv");
  writeFileSync(path, statsTable(files, said.number("warmupSec"), said.number("tailSec")));
  console.log(path);
  return 0;
});
