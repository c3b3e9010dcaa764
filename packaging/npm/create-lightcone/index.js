#!/usr/bin/env node
// `npm create lightcone@latest chat` is `npx lightcone init chat`.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

process.on("exit", (status) => {
  if (status === 0) console.error("\nWhere this says `spacetime`, `npx lightcone` does the same.");
});
process.argv.splice(2, 0, "init");
const sdk = pathToFileURL(createRequire(import.meta.url).resolve("lightcone/package.json"));
await import(new URL("bin/lightcone.mjs", sdk));
