// The guide as a reader follows it, once with the module in TypeScript and once in Rust: each file is written, each command is run, and
// prints what the page says.

import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BINARY, Server } from "../../e2e/src/server";
import { chapters, missingLine, type PageCommand, type PageFile, stepsOf } from "../src/guide";
import { Project, type Running } from "../src/project";

const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "lightcone");
// Compiled dependencies are shared with the other Rust tests.
process.env.CARGO_TARGET_DIR = process.env.LIGHTCONE_MODULES_TARGET_DIR ?? join(cache, "modules-target");
// What `lightcone/testing` starts is the build under test.
process.env.LIGHTCONE_BIN = BINARY;
process.env.NO_COLOR = "1";

/** What a page's address answers, in the place of the internet. */
const texts = createServer((_, response) => response.end("Repair the bicycle\nThe brakes.\n"));

let server: Server;
beforeAll(async () => {
  server = await Server.start('[module-http]\nallow = ["127.0.0.1"]\n');
  await new Promise<void>((listening) => texts.listen(0, "127.0.0.1", listening));
});
afterAll(async () => {
  texts.close();
  await server.stop();
});

describe.each([
  ["TypeScript", ".ts"],
  ["Rust", ".rs"],
])("with a module in %s", (language, extension) => {
  let project: Project;

  beforeAll(async () => {
    project = await Project.create(server, "basic-ts", `tasks-${language.toLowerCase()}`);
    await project.shell("npm install --no-audit --no-fund --prefer-offline --prefix spacetimedb");
    // For the component on the page about clients.
    await project.shell("npm install --no-audit --no-fund --prefer-offline --save-dev react @types/react");
    if (language === "Rust") rmSync(project.path("spacetimedb"), { recursive: true });
    putCommandInto(project);
  });

  const isForOtherLanguage = ({ path }: PageFile): boolean =>
    path.startsWith("spacetimedb/") && (extension === ".ts") !== path.endsWith(".ts");

  test.each(chapters())("%s", { timeout: 1_200_000 }, async (chapter) => {
    const running: [Running, PageCommand][] = [];
    try {
      for (const step of stepsOf(chapter)) {
        if ("path" in step) {
          if (!isForOtherLanguage(step)) write(project, step);
        } else if (step.isBackground) {
          const program = project.start(step.command);
          running.push([program, step]);
          // The last line is what a later command brings about.
          for (const line of step.prints.slice(0, -1)) await program.says(line);
        } else {
          await run(project, step);
        }
      }
      for (const [program, { prints }] of running) await saysInOrder(program, prints);
    } finally {
      for (const [program] of running) program.stop();
    }
    if (extension === ".ts") await project.shell("npx tsc --noEmit -p spacetimedb");
    if (chapter >= "03") await project.shell("npx tsc --noEmit --jsx react-jsx");
  });
});

/** `spacetime` in PATH, with the login of this server's owner. */
function putCommandInto(project: Project): void {
  const { home } = server;
  const file = home.path("bin/spacetime");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(
    file,
    `#!/bin/sh\nexec "${BINARY}" --root-dir "${home.directory}" --config-path "${home.path("cli.toml")}" "$@"\n`,
  );
  chmodSync(file, 0o755);
  const path = process.env.PATH ?? "";
  if (!path.startsWith(dirname(file))) process.env.PATH = `${dirname(file)}${delimiter}${path}`;
  // The project's own settings say which database it is.
  const { database } = JSON.parse(readFileSync(project.path("spacetime.local.json"), "utf8"));
  Object.assign(project, { database });
}

function write(project: Project, { path, text }: PageFile): void {
  const file = project.path(path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

async function run(project: Project, { command, prints }: PageCommand): Promise<void> {
  const { port } = texts.address() as AddressInfo;
  const here = command.replace("https://example.com/", `http://127.0.0.1:${port}/`);
  const output = await project.shell(here);
  const missing = missingLine(output, prints);
  if (missing !== undefined)
    throw new Error(`$ ${command}\nis to print ${JSON.stringify(missing)}:\n${output}`);
}

async function saysInOrder(program: Running, prints: string[]): Promise<void> {
  for (const line of prints) await program.says(line);
  expect(missingLine(program.output(), prints)).toBeUndefined();
}
