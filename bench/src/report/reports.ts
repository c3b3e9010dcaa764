// All that is written after the last run: tables on the terminal, and files in the directory of the runs.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Absence } from "../core/bench";
import { type RunFile, timestamp, writeJson } from "../core/results";
import { htmlPage } from "./page";
import { summaryMarkdown, summaryRows } from "./summary";

export async function writeReports(
  directory: string,
  test: string,
  files: readonly RunFile[],
  absent: readonly Absence[],
  say: (line: string) => void,
): Promise<void> {
  const at = timestamp(new Date());
  const markdown = summaryMarkdown(test, files, absent);
  console.log(`\n${markdown}`);
  writeJson(directory, `summary-${at}.json`, {
    test,
    hardware: files[0]!.hardware,
    rows: summaryRows(files),
    absent,
  });
  writeFileSync(join(directory, `summary-${at}.md`), markdown);
  const page = join(directory, `report-${at}.html`);
  writeFileSync(page, htmlPage(test, files, absent));
  say(`Wrote the tables to ${join(directory, `summary-${at}.md`)}, and a page with charts to ${page}`);
}
