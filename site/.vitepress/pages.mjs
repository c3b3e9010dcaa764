// Which pages the site has, in the order of its sidebar. A page of docs/ that is missing here fails the build.

import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

/** The repository. */
export const ROOT = join(import.meta.dirname, "../..");

const GROUPS = [
  { text: "Begin", pages: ["README.md", "docs/why.md", "docs/moving-over.md"] },
  { text: "The guide", pages: ["docs/guide/README.md", ...below("docs/guide")] },
  {
    text: "Modules and clients",
    pages: [
      "docs/compat.md",
      "sdk-ts/README.md",
      "docs/migrations.md",
      "docs/changes.md",
      "docs/js-abi.md",
      "docs/cpp-modules.md",
    ],
  },
  {
    text: "Running a server",
    pages: ["docs/operations.md", "docs/dashboard.md", "docs/limits.md", "docs/releasing.md", "CHANGELOG.md"],
  },
  {
    text: "Measured",
    pages: ["docs/benchmarks.md", "docs/scoreboard.md", "docs/track-record.md", "bench/README.md"],
  },
  { text: "The interface", pages: ["docs/interface/README.md", ...below("docs/interface")] },
  {
    text: "How it works",
    pages: [
      "docs/architecture.md",
      ...below("docs/design"),
      "docs/on-disk-formats.md",
      "docs/CONTRIBUTING.md",
      "docs/recipes.md",
      "docs/fuzzing.md",
      "docs/simulation.md",
    ],
  },
  { text: "Error codes", pages: ["docs/errors/README.md", ...below("docs/errors")], isLong: true },
];

/** The pages of a directory but for its first one, by name. */
function below(directory) {
  const names = readdirSync(join(ROOT, directory)).filter(
    (name) => name.endsWith(".md") && name !== "README.md",
  );
  return names.sort().map((name) => `${directory}/${name}`);
}

/** All pages, by their paths in the repository. */
export const PAGES = GROUPS.flatMap(({ pages }) => pages);

/** Where a page is on the site, without an ending. */
export function addressOf(page) {
  return `/${page.replace(/README\.md$/, "").replace(/\.md$/, "")}`;
}

function titleOf(page) {
  const heading = /^# (.+)$/m.exec(readFileSync(join(ROOT, page), "utf8"));
  return (heading?.[1] ?? page).replaceAll("`", "");
}

export const SIDEBAR = GROUPS.map(({ text, pages, isLong }) => ({
  text,
  collapsed: isLong === true || text === "The interface" || text === "How it works",
  items: pages.map((page) => ({ text: titleOf(page), link: addressOf(page) })),
}));

/** Throws if docs/ has a page that no reader would find. */
export function checkThatAllAreThere() {
  const known = new Set(PAGES);
  const found = readdirSync(join(ROOT, "docs"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".md"))
    .map((entry) => relative(ROOT, join(entry.parentPath ?? entry.path, entry.name)));
  const missing = found.filter((page) => !known.has(page));
  if (missing.length > 0)
    throw new Error(`not in the sidebar (site/.vitepress/pages.mjs): ${missing.join(", ")}`);
}
