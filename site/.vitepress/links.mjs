// Links: to pages of the site, to files that are in the repository only, and whether each leads somewhere.

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { addressOf, PAGES, ROOT } from "./pages.mjs";

const REPOSITORY = "https://github.com/lightcone-db/lightcone";
const IMAGE = /\.(png|svg|jpg)$/;
const pages = new Set(PAGES);

/** The name of a heading in a link, as GitHub makes it. */
export function slugify(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-");
}

/** What of the repository is no page is read there. Links that lead to nothing fail the build. */
export function linksIntoRepository(markdown) {
  markdown.core.ruler.push("links_into_repository", ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === "link_open" ? token.attrGet("href") : null;
      if (href) token.attrSet("href", target(env.relativePath, href));
    }
  });
}

function target(page, href) {
  if (/^[a-z]+:|^#|^\//.test(href)) return href;
  const [path, anchor] = href.split("#");
  const file = posix.join(dirname(page), decodeURI(path)).replace(/\/$/, "");
  if (pages.has(file) && !file.endsWith("README.md")) return href;
  const first = [file, `${file}/README.md`].find((name) => pages.has(name));
  if (first) return addressOf(first) + (anchor ? `#${anchor}` : "");
  const place = join(ROOT, file);
  if (!existsSync(place)) throw new Error(`${page}: the link to ${href} leads to nothing`);
  if (IMAGE.test(file)) return href;
  return `${REPOSITORY}/${statSync(place).isDirectory() ? "tree" : "blob"}/main/${file}`;
}

/** Looks at the finished site: every link of a page leads to a page, and to a heading that is there. */
export function checkLinks(directory) {
  const files = readdirSync(directory, { recursive: true }).filter((name) => name.endsWith(".html"));
  const texts = new Map(files.map((name) => [name, readFileSync(join(directory, name), "utf8")]));
  const ids = new Map([...texts].map(([name, text]) => [name, new Set(matches(text, / id="([^"]+)"/g))]));
  const wrong = [];
  for (const [name, text] of texts) {
    for (const href of matches(text, /<a [^>]*?href="([^"]+)"/g)) {
      const found = leadsTo(name, href);
      if (found === undefined) continue;
      const [file, anchor] = found;
      if (!ids.has(file)) wrong.push(`${name}: ${href} leads to no page`);
      else if (anchor && !ids.get(file).has(anchor)) wrong.push(`${name}: ${href}: no such heading`);
    }
  }
  if (wrong.length > 0) throw new Error(`dead links:\n${[...new Set(wrong)].join("\n")}`);
  return texts.size;
}

function matches(text, pattern) {
  return [...text.matchAll(pattern)].map(([, found]) => found);
}

/** The file and the heading on this site that a link leads to; nothing if it leads elsewhere. */
function leadsTo(page, href) {
  if (/^[a-z]+:/.test(href)) return undefined;
  const [path, anchor] = href.replaceAll("&amp;", "&").split("#");
  const place = path.startsWith("/") ? path.slice(1) : posix.join(posix.dirname(page), path);
  if (IMAGE.test(place)) return undefined;
  const file = path === "" ? page : place === "" || place.endsWith("/") ? `${place}index.html` : place;
  return [file.endsWith(".html") ? file : `${file}.html`, anchor && decodeURIComponent(anchor)];
}
