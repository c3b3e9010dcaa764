// The site: the pages of the repository with a sidebar and search. `make site` builds it.

import { join } from "node:path";
import { checkLinks, linksIntoRepository, slugify } from "./links.mjs";
import { addressOf, checkThatAllAreThere, PAGES, ROOT, SIDEBAR } from "./pages.mjs";

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
  vite: { plugins: [vueOfThisDirectory()] },
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

/** The pages become components of Vue, which is installed here and not where they are. */
function vueOfThisDirectory() {
  return {
    name: "vue-of-this-directory",
    enforce: "pre",
    resolveId(id, importer, options) {
      if (!/^vue($|\/)/.test(id) || !importer?.endsWith(".md")) return null;
      return this.resolve(id, join(import.meta.dirname, "config.mjs"), { ...options, skipSelf: true });
    },
  };
}
