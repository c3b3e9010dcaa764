// `pnpm run scoreboard [directories or files]`: published figures beside measured ones, as Markdown.
//
//   --write   into docs/scoreboard.md instead of the terminal

import { existsSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { UsageError } from "../config";
import { readRuns } from "../core/results";
import { packageDirectory, repositoryDirectory } from "../init/commands";
import { readCommandLine, runProgram, type Usage } from "../program";
import { publishedRows } from "./scoreboard_compare";
import { measurementsOf } from "./scoreboard_measured";
import { scoreboardPage } from "./scoreboard_page";

const usage: Usage = {
  name: "scoreboard",
  words: "[...results]",
  description: "published figures beside measured ones; directories or files (results/)",
  options: [["--write", "write docs/scoreboard.md"]],
};

runProgram(import.meta.filename, async () => {
  const commandLine = readCommandLine(usage);
  if (!commandLine) return 0;
  const { args, said } = commandLine;
  const isWritten = said.boolean("write") ?? false;
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
  const path = join(repositoryDirectory, "docs/scoreboard.md");
  if (isWritten) writeFileSync(path, page);
  console.log(isWritten ? path : page);
  return 0;
});
