// Bun's HTTP server with one route, GET /health: what HTTP alone costs (section 19, http-floor).

interface BunRuntime {
  serve(options: { hostname: string; port: number; fetch(request: Request): Response }): { port: number };
}
declare const Bun: BunRuntime;

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.env["PORT"] ?? 0),
  fetch: (request) =>
    request.method === "GET" && new URL(request.url).pathname === "/health"
      ? new Response("ok")
      : new Response("not found", { status: 404 }),
});
console.log(`bun health server listening on http://127.0.0.1:${server.port}`);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(0));
