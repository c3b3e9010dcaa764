// `pnpm run scoreboard [directories or files]`: published figures beside measured ones, as Markdown.
//
//   --write   into docs/scoreboard.md instead of the terminal

import { existsSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import cac from "cac";
import { UsageError } from "../config";
import { readRuns } from "../core/results";
import { packageDirectory, repositoryDirectory } from "../init/commands";
import { publishedRows } from "./scoreboard_compare";
import { measurementsOf } from "./scoreboard_measured";
import { scoreboardPage } from "./scoreboard_page";

function main(): void {
  const cli = cac("scoreboard");
  const command = cli
    .command("[...results]", "published figures beside measured ones; directories or files (results/)")
    .option("--write", "write docs/scoreboard.md");
  cli.help();
  const { args, options } = cli.parse(process.argv, { run: false });
  if (options["help"]) return;
  command.checkUnknownOptions();
  // Run from the root of the repository, the names are from there.
  const given = args.map((path) => (existsSync(path) ? resolve(path) : resolve(repositoryDirectory, path)));
  const measurements = measurementsOf(
    readRuns(given.length > 0 ? given : [join(packageDirectory, "results")], true).filter(
      ({ file }) => file.fairness !== undefined,
    ),
  );
  if (measurements.rows.length === 0) throw new UsageError("there are no results of valid runs");
  const sources = measurements.directories.map((directory) => relative(repositoryDirectory, directory));
  const page = scoreboardPage(measurements, publishedRows(), sources);
  if (!options["write"]) {
    console.log(page);
    return;
  }
  const path = join(repositoryDirectory, "docs/scoreboard.md");
  writeFileSync(path, page);
  console.log(path);
}

try {
  main();
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
