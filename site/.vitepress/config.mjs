// The site: the pages of the repository with a sidebar and search. `make site` builds it.

import { join } from "node:path";
import { checkLinks, linksIntoRepository, slugify } from "./links.mjs";
import { addressOf, checkThatAllAreThere, PAGES, ROOT, SIDEBAR } from "./pages.mjs";

const SERVER_RENDERER = "../node_modules/vue/server-renderer/index.mjs";

checkThatAllAreThere();

export default {
  title: "Lightcone",
  description: "A database that runs your code",
  srcDir: ROOT,
  srcExclude: ["**/node_modules/**", ...everythingBut()],
  rewrites: Object.fromEntries(
    PAGES.filter((page) => page.endsWith("README.md")).map((page) => [
      page,
      page.replace(/README\.md$/, "index.md"),
    ]),
  ),
  cacheDir: "node_modules/.cache/vitepress",
  outDir: "dist",
  lang: "en",
  // Pages tell of servers on the reader's machine.
  ignoreDeadLinks: "localhostLinks",
  markdown: {
    // Pages have no HTML, and what looks like it is text.
    html: false,
    anchor: { slugify },
    config: linksIntoRepository,
  },
  // The pages are not below this directory, and import it all the same.
  vite: { resolve: { alias: { "vue/server-renderer": join(import.meta.dirname, SERVER_RENDERER) } } },
  themeConfig: {
    sidebar: SIDEBAR,
    nav: [
      { text: "Guide", link: addressOf("docs/guide/README.md") },
      { text: "Operations", link: addressOf("docs/operations.md") },
      { text: "Compatibility", link: addressOf("docs/compat.md") },
    ],
    outline: [2, 3],
    search: { provider: "local" },
    docFooter: { prev: false, next: false },
  },
  buildEnd({ outDir }) {
    const pages = checkLinks(outDir);
    console.log(`${pages} pages, and every link leads somewhere: ${outDir}`);
  },
};

/** Files of the repository that are no pages of the site. */
function everythingBut() {
  return [
    "modules/**",
    "crates/**",
    "templates/**",
    "tests/**",
    "packaging/**",
    "fuzz/**",
    "site/**",
    "target/**",
    "bench/*/**",
    "sdk-ts/*/**",
  ];
}
