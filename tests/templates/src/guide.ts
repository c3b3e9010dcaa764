// The pages of docs/guide: the files and commands that they have, in order.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const DIRECTORY = join(import.meta.dirname, "../../../docs/guide");

/** A whole file of the project. */
export interface PageFile {
  path: string;
  text: string;
}

/** A command, and lines of what it prints, in order. */
export interface PageCommand {
  command: string;
  /** It goes on running while the rest of the page is read. */
  isBackground: boolean;
  prints: string[];
}

export type Step = PageFile | PageCommand;

/** The chapters, in the order in which they are read. */
export function chapters(): string[] {
  return readdirSync(DIRECTORY)
    .filter((name) => /^\d.*\.md$/.test(name))
    .sort();
}

/** What a reader of a chapter does. */
export function stepsOf(chapter: string): Step[] {
  const text = readFileSync(join(DIRECTORY, chapter), "utf8");
  const blocks = [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)];
  return blocks.flatMap(([, language, code]): Step[] => {
    if (language === "console") return commandsOf(code!);
    const path = /^(?:\/\/|#) (\S+)\n/.exec(code!)?.[1];
    if (path !== undefined) return [{ path, text: code! }];
    if (language) throw new Error(`${chapter}: a block in ${language} names no file:\n${code}`);
    return [];
  });
}

function commandsOf(code: string): PageCommand[] {
  const commands: PageCommand[] = [];
  for (const line of code.trimEnd().split("\n")) {
    if (line.startsWith("$ ")) {
      const isBackground = line.endsWith(" &");
      const command = isBackground ? line.slice(2, -2) : line.slice(2);
      commands.push({ command, isBackground, prints: [] });
    } else {
      commands.at(-1)!.prints.push(line);
    }
  }
  return commands;
}

const squeezed = (line: string): string => line.replace(/\s+/g, " ").trim();

/** The first of the lines that is not in the output behind those before it. */
export function missingLine(output: string, lines: string[]): string | undefined {
  const printed = output.split("\n").map(squeezed);
  let from = 0;
  for (const line of lines) {
    const found = printed.findIndex((one, i) => i >= from && one.includes(squeezed(line)));
    if (found < 0) return line;
    from = found + 1;
  }
  return undefined;
}
