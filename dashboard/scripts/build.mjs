// Makes the files that the server embeds, compressed, in crates/gateway/assets/dashboard.
//
//   node scripts/build.mjs           writes them
//   node scripts/build.mjs --check   fails if they are not what the sources give
//
// What is compared is what is inside of the compressed files: other versions of zlib pack the same bytes in other ways.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const out = join(root, "../crates/gateway/assets/dashboard");
/** Of all files together, compressed. */
const BYTES_MAX = 400_000;
/** Files that are compressed already stay as they are. */
const PACKED = new Set([".woff2"]);
/** Whose work is in the files, with the texts that their licences want to be kept. */
const LICENCES = [
  "react",
  "react-dom",
  "scheduler",
  "@fontsource-variable/inter",
  "@fontsource-variable/jetbrains-mono",
];

const extension = (name) => /\.\w+$/.exec(name)[0];
const stored = (name) => (PACKED.has(extension(name)) ? name : `${name}.gz`);

/** Names with a hash of the content, so that browsers may keep them for ever. */
function hashed(name, bytes) {
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 12);
  return name.replace(/\.\w+$/, (end) => `-${hash}${end}`);
}

/** The files by name, as browsers get them. */
export async function bundle(isDevelopment = false) {
  const result = await build({
    absWorkingDir: root,
    entryPoints: { main: "src/main.tsx" },
    outdir: "built",
    bundle: true,
    write: false,
    minify: !isDevelopment,
    format: "esm",
    target: ["es2022", "chrome111", "firefox114", "safari16.4"],
    jsx: "automatic",
    charset: "utf8",
    legalComments: "none",
    assetNames: "[name]-[hash]",
    loader: { ".woff2": "file" },
    define: { "process.env.NODE_ENV": isDevelopment ? '"development"' : '"production"' },
    logLevel: "error",
  });
  const files = new Map();
  const names = { "icon.svg": undefined, "main.css": undefined, "main.js": undefined };
  const add = (name, bytes) => files.set((names[name] = hashed(name, bytes)), bytes);
  add("icon.svg", readFileSync(join(root, "src/icon.svg")));
  for (const { path, contents } of result.outputFiles) {
    const name = path.slice(join(root, "built").length + 1);
    if (name in names) add(name, Buffer.from(contents));
    else
      files.set(name.toLowerCase(), Buffer.from(contents.buffer, contents.byteOffset, contents.byteLength));
  }
  // esbuild's own hashes have capital letters.
  const css = files
    .get(names["main.css"])
    .toString()
    .replace(/[\w-]+-[A-Z0-9]{8}\.woff2/g, (name) => name.toLowerCase());
  files.delete(names["main.css"]);
  add("main.css", Buffer.from(css));
  let page = readFileSync(join(root, "src/index.html"), "utf8");
  for (const [name, made] of Object.entries(names)) page = page.replace(`{{${name}}}`, made);
  files.set("index.html", Buffer.from(page));
  files.set("licences.txt", Buffer.from(licences()));
  return files;
}

function licences() {
  const texts = LICENCES.map((name) => {
    const directory = join(root, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
    const file = readdirSync(directory).find((one) => /^licen[cs]e/i.test(one));
    return `${name} ${version} (${license})\n\n${readFileSync(join(directory, file), "utf8").trim()}\n`;
  });
  return `The dashboard contains parts of these packages.\n\n${texts.join("\n----\n\n")}`;
}

function content(name) {
  const bytes = readFileSync(join(out, name));
  return name.endsWith(".gz") ? gunzipSync(bytes) : bytes;
}

function check(files) {
  const wanted = [...files.keys()].map(stored).sort();
  const found = existsSync(out) ? readdirSync(out).sort() : [];
  const wrong = [
    ...wanted.filter((name) => !found.includes(name)).map((name) => `${name} is missing`),
    ...found.filter((name) => !wanted.includes(name)).map((name) => `${name} is not made any more`),
    ...[...files].flatMap(([name, bytes]) =>
      found.includes(stored(name)) && !content(stored(name)).equals(bytes) ? [`${name} differs`] : [],
    ),
  ];
  if (wrong.length === 0) return;
  throw new Error(
    `crates/gateway/assets/dashboard is not what dashboard/ gives; run \`npm run build\` there:\n${wrong.join("\n")}`,
  );
}

function write(files) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  for (const [name, bytes] of files) {
    const packed = PACKED.has(extension(name)) ? bytes : gzipSync(bytes, { level: 9 });
    // The header names the system that packed it, which should make no difference.
    if (name !== stored(name)) packed[9] = 255;
    writeFileSync(join(out, stored(name)), packed);
  }
}

function size() {
  const sizes = readdirSync(out).map((name) => readFileSync(join(out, name)).length);
  return sizes.reduce((all, one) => all + one, 0);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = await bundle();
  if (process.argv.includes("--check")) check(files);
  else write(files);
  if (size() > BYTES_MAX) throw new Error(`${size()} bytes are more than ${BYTES_MAX}`);
  console.log(`${files.size} files, ${size()} bytes`);
}
