// The page of the scoreboard: published figures of other hardware beside what was measured here (section 23).

import { formatInteger, formatLatency, markdownTable, type TextColumn } from "./format";
import { publishedHardware } from "./published";
import { counterpartOf, type PublishedRow, suits, type Target, targets } from "./scoreboard_compare";
import type { MeasuredRow, Measurements, Metric } from "./scoreboard_measured";

interface Column {
  metric: Metric;
  title: string;
}

interface TestTable {
  test: string;
  heading: string;
  columns: Column[];
}

const units: Record<Exclude<Metric, "rate">, string> = {
  ops_per_cpu_pct: "per CPU %",
  mean_ms: "mean ms",
  p50_ms: "p50 ms",
  p95_ms: "p95 ms",
  p99_ms: "p99 ms",
  mean_us: "mean µs",
  p99_us: "p99 µs",
};

/** A test, what its rate counts, its other figures, and what it is. */
const tables: [test: string, rate: string, figures: string, heading: string][] = [
  ["test-1", "transfers/s", "p50_ms p99_ms ops_per_cpu_pct", "transfers between accounts"],
  ["ycsb-a", "operations/s", "ops_per_cpu_pct mean_ms", "half reads, half updates"],
  ["ycsb-b", "operations/s", "ops_per_cpu_pct mean_ms", "95 % reads, 5 % updates"],
  ["ycsb-c", "operations/s", "ops_per_cpu_pct mean_ms", "reads only"],
  ["ycsb-d", "operations/s", "ops_per_cpu_pct mean_ms", "95 % reads of the latest, 5 % inserts"],
  ["ycsb-e", "operations/s", "ops_per_cpu_pct mean_ms", "95 % scans, 5 % inserts"],
  ["ycsb-f", "operations/s", "ops_per_cpu_pct mean_ms", "half reads, half read-modify-writes"],
  [
    "content-crud",
    "requests/s",
    "mean_ms p99_ms ops_per_cpu_pct",
    "create, read, change, read, delete, read",
  ],
  ["job-queue", "jobs/s", "", "workers fetch a job and acknowledge it"],
  ["job-lease", "jobs/s", "", "workers take fifty jobs at a time"],
  ["data-layer", "rows/s", "mean_us p99_us", "one client, one operation at a time"],
  ["data-layer-crm", "rows/s", "mean_us p99_us", "the same on five tables that refer to each other"],
  ["authed-load", "requests/s", "p50_ms p95_ms ops_per_cpu_pct", "50 authenticated users"],
  ["http-floor", "requests/s", "p95_ms ops_per_cpu_pct", "GET of a bare endpoint"],
];

const testTables = tables.flatMap(([test, rate, figures, heading]): TestTable[] => {
  const others = figures.split(" ").filter(Boolean) as Exclude<Metric, "rate">[];
  const columns = [
    { metric: "rate" as const, title: rate },
    ...others.map((metric) => ({ metric, title: units[metric] })),
  ];
  const suffixes = test === "test-1" ? ["", ", native load generator"] : [""];
  return suffixes.map((suffix) => ({
    ...{ test: `${test}${suffix}`, heading: `${test}: ${heading}${suffix}`, columns },
  }));
});

const nothing = "–";

function formatFigure(value: number | undefined): string {
  if (value === undefined) return nothing;
  return Math.abs(value) >= 1000 ? formatInteger(value) : formatLatency(value);
}

/** `alpha=1.5 inflight=40` is `alpha 1.5, 40 in flight`. */
export const loadTitle = (load: string): string =>
  load
    .replace(/^tests=(\d+)/, (_, tests: string) => `${formatInteger(Number(tests))} tests`)
    .replace(/ ?inflight=(\w+)/, ", $1 in flight")
    .replace(/ concurrency=(\d+)/, ", $1 at a time")
    .replace(/^concurrency=1$/, "1 worker")
    .replace(/^concurrency=(\d+)/, "$1 workers")
    .replace(/ ?clients=(\d+)/, (all) => `${all.startsWith(" ") ? ", " : ""}${all.split("=")[1]} clients`)
    .replace(/=/g, " ");

/** One line of a table: what was published, what was measured, or both of the same system. */
interface Line {
  published?: PublishedRow;
  measured?: MeasuredRow;
  counterpart?: PublishedRow | undefined;
}

/** What a line is about. */
const rowOf = ({ measured, published }: Line) => (measured ?? published)!;

function linesOf(test: string, measured: readonly MeasuredRow[], published: readonly PublishedRow[]): Line[] {
  const lines = measured
    .filter((row) => row.test === test)
    .map((row): Line => {
      const counterpart = counterpartOf(row, published);
      const isSame = row.load === counterpart?.load && row.system === counterpart.system;
      return { measured: row, counterpart, ...(isSame && { published: counterpart }) };
    });
  const shown = new Set(lines.flatMap((line) => line.published ?? []));
  const rest = published.filter((row) => row.test === test && !shown.has(row));
  const all = [...lines, ...rest.map((row): Line => ({ published: row }))];
  const order = loadOrder(all);
  const rateOf = (line: Line) => rowOf(line).values.rate ?? 0;
  return all.sort(
    (a, b) =>
      order.indexOf(rowOf(a).load) - order.indexOf(rowOf(b).load) ||
      Number(!a.measured) - Number(!b.measured) ||
      rateOf(b) - rateOf(a),
  );
}

/** Loads that were measured and published first, then those of one side. Numbers within a name count as numbers. */
function loadOrder(lines: readonly Line[]): string[] {
  const sides = new Map<string, number>();
  for (const line of lines) {
    const bits = (line.measured ? 1 : 0) | (line.published || line.counterpart ? 2 : 0);
    sides.set(rowOf(line).load, (sides.get(rowOf(line).load) ?? 0) | bits);
  }
  const rank = (load: string) => ({ 3: 0, 1: 1, 2: 2 })[sides.get(load) as 1 | 2 | 3];
  const byName = new Intl.Collator("en", { numeric: true }).compare;
  return [...sides.keys()].sort((a, b) => rank(a) - rank(b) || byName(a, b));
}

function ratioText({ measured, counterpart }: Line, columns: readonly Column[]): string {
  const own = measured?.values.rate;
  const other = counterpart?.values.rate;
  if (own === undefined || other === undefined) return nothing;
  const parts = [(own / other).toPrecision(3)];
  const [ownPerCpu, otherPerCpu] = [measured!.values.ops_per_cpu_pct, counterpart!.values.ops_per_cpu_pct];
  if (ownPerCpu && otherPerCpu && columns.some(({ metric }) => metric === "ops_per_cpu_pct"))
    parts.push(`(per CPU ${(ownPerCpu / otherPerCpu).toPrecision(3)})`);
  if (counterpart!.system !== measured!.system) parts.push(`of ${counterpart!.system}`);
  if (counterpart!.load !== measured!.load) parts.push(`at ${loadTitle(counterpart!.load)}`);
  return parts.join(" ");
}

function publishedText({ published }: Line, metric: Metric): string {
  const stddev = metric === "rate" ? published?.stddev : undefined;
  const spread = stddev === undefined ? "" : ` ± ${formatFigure(stddev)}`;
  return formatFigure(published?.values[metric]) + spread;
}

const notesText = ({ published, measured }: Line, hasManyDays: boolean): string =>
  [
    ...(measured?.notes ?? []),
    ...(measured && hasManyDays ? [measured.day] : []),
    ...(published?.note ? [`published: ${published.note}`] : []),
  ].join(", ");

function testSection(
  { test, heading, columns }: TestTable,
  lines: readonly Line[],
  hasManyDays: boolean,
): string {
  const isPublished = (metric: Metric) => lines.some((line) => line.published?.values[metric] !== undefined);
  const theirs = columns.filter(({ metric }) => isPublished(metric));
  const unless = (isNone: boolean, column: TextColumn<Line>) => (isNone ? [] : [column]);
  const isOneLoad = new Set(lines.map((line) => rowOf(line).load)).size === 1;
  const table = markdownTable(lines, [
    ...unless(isOneLoad, ["Load", (line) => loadTitle(rowOf(line).load)]),
    ["System", (line) => (line.measured ? `\`${line.measured.system}\`` : rowOf(line).system)],
    ...theirs.map(
      ({ metric, title }): TextColumn<Line> => [`published ${title}`, (line) => publishedText(line, metric)],
    ),
    ...unless(theirs.length === 0, ["on", ({ published }) => published?.hardware ?? nothing]),
    ...columns.map(
      ({ metric, title }): TextColumn<Line> => [
        `measured here ${title}`,
        ({ measured }) => formatFigure(measured?.values[metric]),
      ],
    ),
    ...unless(theirs.length === 0, ["measured ÷ published", (line) => ratioText(line, columns)]),
    ["notes", (line) => notesText(line, hasManyDays)],
  ]);
  const without = theirs.length === 0 ? `No figures were published for ${test}.\n\n` : "";
  return `## ${heading}\n\n${without}${table}`;
}

/** The rows to beat, and what was measured of each. */
function targetTable(measured: readonly MeasuredRow[], published: readonly PublishedRow[]): string {
  const rows = targets.flatMap((target) => {
    const row = publishedOf(target, published);
    const value = row?.values[target.metric];
    return row && value !== undefined ? [{ target, row, value }] : [];
  });
  const measuredText = ({ target, value }: (typeof rows)[number]) => {
    const found = measured.flatMap((own) => {
      const result = own.values[target.metric];
      if (!suits(target, own) || result === undefined) return [];
      return [`\`${nameOf(own)}\` ${formatFigure(result)} (${(result / value).toPrecision(3)})`];
    });
    return found.length === 0 ? "not measured" : found.join("<br>");
  };
  return markdownTable(rows, [
    ["Workload", ({ target }) => target.title],
    ["figure", ({ target }) => target.unit],
    ["row to beat", ({ row }) => row.system],
    ["published", ({ value }) => formatFigure(value)],
    ["on", ({ row }) => row.hardware],
    ["measured here (÷ published)", measuredText],
  ]);
}

const publishedOf = ({ test, load, published: name }: Target, published: readonly PublishedRow[]) =>
  published.find(
    (row) => row.test === test && row.load === (name.load ?? load) && row.system === name.system,
  );

const nameOf = ({ system, load }: MeasuredRow) => (load.endsWith(" hot") ? `${system}, engine-hot` : system);

function legend(published: readonly PublishedRow[]): string {
  const used = new Set(published.map(({ hardware }) => hardware));
  const machines = Object.entries(publishedHardware).filter(([key]) => used.has(key));
  return markdownTable(machines, [
    ["on", ([key]) => key],
    ["machine of the published figures", ([, machine]) => machine],
  ]);
}

/** All of `docs/scoreboard.md`. `sources` says which results it is of. */
export function scoreboardPage(
  measurements: Measurements,
  published: readonly PublishedRow[],
  sources: readonly string[],
): string {
  const { rows, machines, days, commits, invalidRuns } = measurements;
  const sections = testTables.flatMap((shape) => {
    const lines = linesOf(shape.test, rows, published);
    return lines.length === 0 ? [] : [testSection(shape, lines, days.length > 1)];
  });
  const leftOut = invalidRuns === 0 ? "" : ` ${invalidRuns} runs are left out: they are not valid.`;
  const parts = [
    "# Scoreboard",
    "What others have published, beside what this suite measured. **The published figures are of other, mostly larger machines, and not " +
      "measured by us**: the ratios say nothing about the systems alone. Systems that were measured here in the same session can be compared " +
      "with each other; [benchmarks.md](benchmarks.md) says how they were.",
    `This page is written by \`pnpm run scoreboard --write\`, from [bench/scoreboard.json](../bench/scoreboard.json) and results of ` +
      "`pnpm run bench <test>` ([bench/README.md](../bench/README.md)). Runs of the same load in one directory are averaged; where several " +
      `directories have it, the newest counts.${leftOut}`,
    `- measured here: ${days.join(", ") || "nothing"}, on ${machines.join("; ") || nothing}`,
    `- results: ${sources.map((source) => `[${source}](../${source})`).join(", ") || nothing}`,
    `- commits: ${commits.map((commit) => `\`${commit}\``).join(", ") || nothing}`,
    legend(published),
    "`ops per CPU %`, here `per CPU %`, is throughput by the processor time of everything but the client; 100 % is one hardware thread. " +
      "`client-bound` rows were limited by the client, which ran on the same machine.",
    "Measured here, `lightcone`, `spacetimedb`, `spacetimedb_rust`, `spacetimedb_http` and `spacetimedb_sub` are all this repository's server: " +
      "by its own client, by the published packages, and over HTTP ([systems](../bench/README.md#systems)). What was published as `spacetimedb` " +
      "is SpacetimeDB itself.",
    "What was published of embedded engines, of prices and of the size of programs has no counterpart here, and is in " +
      "[bench/scoreboard.json](../bench/scoreboard.json) only.",
    "## Rows to beat",
    "Figures of time are better when smaller, all others when larger.",
    targetTable(rows, published),
    ...sections,
  ];
  // A list has no empty lines between its entries.
  return `${parts.join("\n\n").replace(/^(- .*)\n\n(?=- )/gm, "$1\n")}\n`;
}
