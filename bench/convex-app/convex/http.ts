// The same by plain HTTP routes, for a try with curl; the benchmark calls the functions.

import { anyApi, httpActionGeneric, httpRouter } from "convex/server";

const http = httpRouter();

http.route({
  path: "/seed",
  method: "POST",
  handler: httpActionGeneric(async ({ runMutation }, request) => {
    await runMutation(anyApi.seed!.seed_range!, await request.json());
    return Response.json({ ok: true });
  }),
});

http.route({
  path: "/transfer",
  method: "POST",
  handler: httpActionGeneric(async ({ runMutation }, request) =>
    Response.json({ ok: true, result: await runMutation(anyApi.transfer!.transfer!, await request.json()) }),
  ),
});

export default http;
