// The page of the scoreboard: published figures of other hardware beside what was measured here (section 23).

import { formatInteger, formatLatency, markdownTable } from "./format";
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

const column = (metric: Metric, title: string): Column => ({ metric, title });
const perCpu = column("ops_per_cpu_pct", "per CPU %");

const ycsbMixes: Record<string, string> = {
  a: "half reads, half updates",
  b: "95 % reads, 5 % updates",
  c: "reads only",
  d: "95 % reads of the latest, 5 % inserts",
  e: "95 % scans, 5 % inserts",
  f: "half reads, half read-modify-writes",
};

const testTables: TestTable[] = [
  ...["", ", native load generator"].map((suffix) => ({
    test: `test-1${suffix}`,
    heading: `test-1: transfers between accounts${suffix}`,
    columns: [column("rate", "transfers/s"), column("p50_ms", "p50 ms"), column("p99_ms", "p99 ms"), perCpu],
  })),
  ...Object.entries(ycsbMixes).map(([letter, mix]) => ({
    test: `ycsb-${letter}`,
    heading: `ycsb-${letter}: ${mix}`,
    columns: [column("rate", "operations/s"), perCpu, column("mean_ms", "mean ms")],
  })),
  {
    test: "content-crud",
    heading: "content-crud: create, read, change, read, delete, read",
    columns: [column("rate", "requests/s"), column("mean_ms", "mean ms"), column("p99_ms", "p99 ms"), perCpu],
  },
  {
    test: "job-queue",
    heading: "job-queue: workers fetch a job and acknowledge it",
    columns: [column("rate", "jobs/s")],
  },
  {
    test: "job-lease",
    heading: "job-lease: workers take fifty jobs at a time",
    columns: [column("rate", "jobs/s")],
  },
  {
    test: "data-layer",
    heading: "data-layer: one client, one operation at a time",
    columns: [column("rate", "rows/s"), column("mean_us", "mean µs"), column("p99_us", "p99 µs")],
  },
  {
    test: "data-layer-crm",
    heading: "data-layer-crm: the same on five tables that refer to each other",
    columns: [column("rate", "rows/s"), column("mean_us", "mean µs"), column("p99_us", "p99 µs")],
  },
  {
    test: "authed-load",
    heading: "authed-load: 50 authenticated users",
    columns: [column("rate", "requests/s"), column("p50_ms", "p50 ms"), column("p95_ms", "p95 ms"), perCpu],
  },
  {
    test: "http-floor",
    heading: "http-floor: GET of a bare endpoint",
    columns: [column("rate", "requests/s"), column("p95_ms", "p95 ms"), perCpu],
  },
];

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
  load: string;
  system: string;
  published?: PublishedRow;
  measured?: MeasuredRow;
  counterpart?: PublishedRow;
}

function linesOf(test: string, measured: readonly MeasuredRow[], published: readonly PublishedRow[]): Line[] {
  const isNamedAlike = (row: MeasuredRow, other: PublishedRow) =>
    row.load === other.load && row.system === other.system;
  const lines = measured
    .filter((row) => row.test === test)
    .map((row): Line => {
      const counterpart = counterpartOf(row, published);
      const own = counterpart && isNamedAlike(row, counterpart) ? { published: counterpart } : {};
      return {
        load: row.load,
        system: row.system,
        measured: row,
        ...(counterpart && { counterpart }),
        ...own,
      };
    });
  const shown = new Set(lines.flatMap((line) => line.published ?? []));
  const rest = published
    .filter((row) => row.test === test && !shown.has(row))
    .map((row): Line => ({ load: row.load, system: row.system, published: row }));
  const all = [...lines, ...rest];
  const order = loadOrder(all);
  const rateOf = ({ measured, published }: Line) => (measured ?? published)?.values.rate ?? 0;
  return all.sort(
    (a, b) =>
      order.indexOf(a.load) - order.indexOf(b.load) ||
      Number(!a.measured) - Number(!b.measured) ||
      rateOf(b) - rateOf(a),
  );
}

/** Loads that were measured and published first, then those of one side. Numbers within a name count as numbers. */
function loadOrder(lines: readonly Line[]): string[] {
  const sides = new Map<string, number>();
  for (const { load, measured, published, counterpart } of lines) {
    const bits = (measured ? 1 : 0) | (published || counterpart ? 2 : 0);
    sides.set(load, (sides.get(load) ?? 0) | bits);
  }
  const rank = (load: string) => ({ 3: 0, 1: 1, 2: 2 })[sides.get(load) as 1 | 2 | 3];
  const byName = new Intl.Collator("en", { numeric: true }).compare;
  return [...sides.keys()].sort((a, b) => rank(a) - rank(b) || byName(a, b));
}

function ratioText({ measured, counterpart, load, system }: Line, columns: readonly Column[]): string {
  const own = measured?.values.rate;
  const other = counterpart?.values.rate;
  if (own === undefined || other === undefined) return nothing;
  const parts = [(own / other).toPrecision(3)];
  const [ownPerCpu, otherPerCpu] = [measured!.values.ops_per_cpu_pct, counterpart!.values.ops_per_cpu_pct];
  if (ownPerCpu && otherPerCpu && columns.includes(perCpu))
    parts.push(`(per CPU ${(ownPerCpu / otherPerCpu).toPrecision(3)})`);
  if (counterpart!.system !== system) parts.push(`of ${counterpart!.system}`);
  if (counterpart!.load !== load) parts.push(`at ${loadTitle(counterpart!.load)}`);
  return parts.join(" ");
}

function testSection(
  { test, heading, columns }: TestTable,
  lines: readonly Line[],
  hasManyDays: boolean,
): string {
  const isPublished = (metric: Metric) => lines.some((line) => line.published?.values[metric] !== undefined);
  const theirs = columns.filter(({ metric }) => isPublished(metric));
  const hasLoads = new Set(lines.map(({ load }) => load)).size > 1;
  const header = [
    ...(hasLoads ? ["Load"] : []),
    "System",
    ...theirs.map(({ title }) => `published ${title}`),
    ...(theirs.length > 0 ? ["on"] : []),
    ...columns.map(({ title }) => `measured here ${title}`),
    ...(theirs.length > 0 ? ["measured ÷ published"] : []),
    "notes",
  ];
  const rows = lines.map((line) => {
    const { published, measured } = line;
    const stddev = published?.stddev === undefined ? "" : ` ± ${formatFigure(published.stddev)}`;
    return [
      ...(hasLoads ? [loadTitle(line.load)] : []),
      measured ? `\`${line.system}\`` : line.system,
      ...theirs.map(
        ({ metric }) => formatFigure(published?.values[metric]) + (metric === "rate" ? stddev : ""),
      ),
      ...(theirs.length > 0 ? [published?.hardware ?? nothing] : []),
      ...columns.map(({ metric }) => formatFigure(measured?.values[metric])),
      ...(theirs.length > 0 ? [ratioText(line, columns)] : []),
      [
        ...(measured?.notes ?? []),
        ...(measured && hasManyDays ? [measured.day] : []),
        ...(published?.note ? [`published: ${published.note}`] : []),
      ].join(", "),
    ];
  });
  const without = theirs.length === 0 ? `No figures were published for ${test}.\n\n` : "";
  return `## ${heading}\n\n${without}${markdownTable(header, rows)}`;
}

/** The rows to beat, and what was measured of each. */
function targetTable(measured: readonly MeasuredRow[], published: readonly PublishedRow[]): string {
  const rows = targets.flatMap((target) => {
    const row = publishedOf(target, published);
    const value = row?.values[target.metric];
    if (!row || value === undefined) return [];
    const found = measured.filter((own) => suits(target, own) && own.values[target.metric] !== undefined);
    const results = found
      .map((own) => ({ own, result: own.values[target.metric]! }))
      .map(
        ({ own, result }) =>
          `\`${nameOf(own)}\` ${formatFigure(result)} (${(result / value).toPrecision(3)})`,
      );
    const cell = results.length === 0 ? "not measured" : results.join("<br>");
    return [[target.title, target.unit, row.system, formatFigure(value), row.hardware, cell]];
  });
  const header = ["Workload", "figure", "row to beat", "published", "on", "measured here (÷ published)"];
  return markdownTable(header, rows);
}

const publishedOf = ({ test, load, published: name }: Target, published: readonly PublishedRow[]) =>
  published.find(
    (row) => row.test === test && row.load === (name.load ?? load) && row.system === name.system,
  );

const nameOf = ({ system, load }: MeasuredRow) => (load.endsWith(" hot") ? `${system}, engine-hot` : system);

function legend(published: readonly PublishedRow[]): string {
  const used = new Set(published.map(({ hardware }) => hardware));
  const rows = Object.entries(publishedHardware)
    .filter(([key]) => used.has(key))
    .map(([key, machine]) => [key, machine]);
  return markdownTable(["on", "machine of the published figures"], rows);
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
