// The built package in whatever runs this file; shows what it saw as JSON.
// Arguments: address of the server, name of a database of module `transfer`, compression, and `cjs` for the CommonJS build.

import { createRequire } from "node:module";
import process from "node:process";
import { smoke } from "./smoke.mjs";

const [url, database, compression, format] = process.argv.slice(2);
const sdk =
  format === "cjs"
    ? createRequire(import.meta.url)("../../dist/index.cjs")
    : await import("../../dist/index.mjs");
console.log(JSON.stringify(await smoke(sdk, url, database, compression)));
