// All that is written after the last run: tables on the terminal, and files in the directory of the runs.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Absence, RunFile } from "../core/result";
import { timestamp, writeJson } from "../core/results";
import { htmlPage } from "./page";
import { summaryRows } from "./rows";
import { summaryMarkdown } from "./tables";

export function writeReports(
  directory: string,
  files: readonly RunFile[],
  absent: readonly Absence[],
  say: (line: string) => void,
): void {
  const at = timestamp(new Date());
  const markdown = summaryMarkdown(files, absent);
  console.log(`\n${markdown}`);
  const { test, hardware } = files[0]!;
  writeJson(directory, `summary-${at}.json`, { test, hardware, rows: summaryRows(files), absent });
  writeFileSync(join(directory, `summary-${at}.md`), markdown);
  const page = join(directory, `report-${at}.html`);
  writeFileSync(page, htmlPage(files, absent));
  say(`Wrote the tables to ${join(directory, `summary-${at}.md`)}, and a page with charts to ${page}`);
}
