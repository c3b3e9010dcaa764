// What the programs of the suite have in common: their command lines, their exit codes, and how they say what went wrong.

import cac from "cac";
import { type Environment, type Raw, Said, UsageError } from "./config";
import { NotRunning } from "./connectors/connector";

const isExpected = (error: unknown): error is Error =>
  error instanceof UsageError ||
  error instanceof NotRunning ||
  (error instanceof Error && error.name === "CACError");

/** Runs a program whose file was started, and not only imported. Errors that a person can mend are told in one line. */
export function runProgram(file: string, main: () => Promise<number>): void {
  if (process.argv[1] !== file) return;
  main().then(
    // Behind all that was written: a pipe takes it later.
    (code) => process.stdout.write("", () => process.exit(code)),
    (error: unknown) => {
      console.error(isExpected(error) ? `error: ${error.message}` : error);
      process.exit(1);
    },
  );
}

export interface Usage {
  name: string;
  /** E.g. `[commit]`. */
  words: string;
  description: string;
  /** What each option does, by its form. */
  options: readonly (readonly [form: string, description: string])[];
}

/** Reads a command line; undefined after `--help`, which prints the usage itself. */
export function readCommandLine(
  { name, words, description, options: forms }: Usage,
  argv: readonly string[] = process.argv.slice(2),
  environment: Environment = process.env,
) {
  const cli = cac(name);
  const command = cli.command(words, description).ignoreOptionDefaultValue();
  for (const [form, does] of forms) command.option(form, does);
  cli.help();
  const { args, options } = cli.parse(["node", name, ...argv], { run: false });
  if (options["help"]) return undefined;
  command.checkUnknownOptions();
  command.checkUnusedArgs();
  return { args, said: new Said(options as Record<string, Raw>, environment) };
}
