// Pages as a server makes them: in a process without a page, with the files that each framework has for servers.

import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import type { House } from "./page";
import { svelteForEsbuild } from "./svelte_files";

const run = promisify(execFile);

const program = (file: string): string => `
  import { DbConnection } from "../client/bindings";
  import { render } from "./${file}";
  const connect = () => { console.error("a server connected"); process.exit(1); };
  const builder = DbConnection.builder().withUri("ws://localhost:1").withDatabaseName("x").withWSFn(connect);
  process.stdout.write(await render({ builder, log: [], seen: [], controls: {} }));
`;

/** The HTML of the page; what is written to the console of the server is an error. */
export async function renderOnServer({ server }: Pick<House, "server">): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "lightcone-page-"));
  const outfile = join(directory, "server.mjs");
  try {
    await build({
      stdin: { contents: program(server), resolveDir: import.meta.dirname, loader: "ts" },
      bundle: true,
      outfile,
      platform: "node",
      format: "esm",
      target: "node20",
      // Some frameworks are CommonJS modules there.
      banner: {
        js: `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`,
      },
      plugins: [svelteForEsbuild("server")],
      logLevel: "error",
    });
    const { stdout, stderr } = await run("node", [outfile]);
    if (stderr !== "") throw new Error(stderr);
    return stdout;
  } finally {
    await rm(directory, { recursive: true });
  }
}
