// The page as it is in the sources, built anew for each visit, in front of a server that runs already:
//
//   node scripts/dev.mjs [port of the server, 3000] [own port, 5180; 0 for any]

import { createServer, request } from "node:http";
import { connect } from "node:net";
import { bundle } from "./build.mjs";

const [server = "3000", own = "5180"] = process.argv.slice(2);
const TYPES = {
  html: "text/html",
  js: "text/javascript",
  css: "text/css",
  svg: "image/svg+xml",
  woff2: "font/woff2",
  txt: "text/plain",
};
// As the server says it (crates/gateway/src/http/dashboard.rs).
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

let files = await bundle();

const page = createServer(async (incoming, answer) => {
  const { pathname } = new URL(incoming.url, "http://here");
  if (!pathname.startsWith("/dashboard")) {
    const { method, headers, url } = incoming;
    const onward = request({ host: "127.0.0.1", port: server, path: url, method, headers }, (came) => {
      answer.writeHead(came.statusCode, came.headers);
      came.pipe(answer);
    });
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
    incoming.pipe(onward);
    return;
  }
  if (pathname === "/dashboard") return answer.writeHead(308, { location: "dashboard/" }).end();
  const name = pathname.slice("/dashboard/".length) || "index.html";
  if (name === "index.html") files = await bundle(process.env.NODE_ENV === "development");
  const bytes = files.get(name);
  if (!bytes) return answer.writeHead(404).end();
  const type = `${TYPES[name.split(".").at(-1)]}; charset=utf-8`;
  answer
    .writeHead(200, { "content-type": type, "content-security-policy": POLICY, "cache-control": "no-store" })
    .end(bytes);
});

page.on("upgrade", (incoming, socket) => {
  const onward = connect(Number(server), "127.0.0.1", () => {
    const lines = [`${incoming.method} ${incoming.url} HTTP/1.1`];
    for (let at = 0; at < incoming.rawHeaders.length; at += 2)
      lines.push(`${incoming.rawHeaders[at]}: ${incoming.rawHeaders[at + 1]}`);
    onward.write(`${lines.join("\r\n")}\r\n\r\n`);
    onward.pipe(socket).pipe(onward);
  });
  onward.on("error", () => socket.destroy());
  socket.on("error", () => onward.destroy());
});

page.listen(Number(own), "127.0.0.1", () =>
  console.log(`http://127.0.0.1:${page.address().port}/dashboard/`),
);
