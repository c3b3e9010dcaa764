// The interface of the built package as text, in api/, so that a change of it is seen in review: `npm run api -- --update`
// writes it. Without `--update` it is an error if a text differs, or if an export has no comment.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Extractor, ExtractorConfig } from "@microsoft/api-extractor";

const root = fileURLToPath(new URL("..", import.meta.url));
const isUpdate = process.argv.includes("--update");
const silent = { default: { logLevel: "none" } };
const problems = [];

/** An export without a comment: it begins its line, and is none of the names that the bundler of types gives to files. */
function noteMessage(message) {
  message.handled = true;
  const { messageId, text, sourceFilePath, sourceFileColumn } = message;
  if (messageId !== "ae-undocumented" || sourceFileColumn !== 1 || text.includes("_exports")) return;
  problems.push(`${text} (${sourceFilePath.slice(root.length)})`);
}

const { exports } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
const entries = Object.keys(exports).filter((name) => !name.endsWith(".json") && name !== "./sdk");
for (const entry of entries.map((name) => name.slice(2) || "index")) {
  const compilerOptions = {
    module: "esnext",
    moduleResolution: "bundler",
    target: "es2022",
    skipLibCheck: true,
  };
  const config = ExtractorConfig.prepare({
    packageJsonFullPath: `${root}package.json`,
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: `${root}dist/${entry}.d.mts`,
      compiler: { overrideTsconfig: { compilerOptions, include: [`${root}dist/*.d.mts`] } },
      apiReport: {
        enabled: true,
        reportFileName: `${entry}.api.md`,
        reportFolder: `${root}api`,
        reportTempFolder: `${root}node_modules/.cache/api`,
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: silent,
        extractorMessageReporting: { ...silent, "ae-undocumented": { logLevel: "warning" } },
        tsdocMessageReporting: silent,
      },
    },
  });
  const { apiReportChanged } = Extractor.invoke(config, {
    localBuild: isUpdate,
    messageCallback: noteMessage,
  });
  if (apiReportChanged && !isUpdate) {
    problems.push(
      `api/${entry}.api.md is not what the package offers: npm run build && npm run api -- --update`,
    );
  }
}
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
