// The package in a worker of workerd, which Cloudflare runs: shows what it saw as JSON, or why it did not get so far.

import * as sdk from "package under test";
import { smoke } from "./smoke.mjs";

export default {
  async fetch(request) {
    const { searchParams } = new URL(request.url);
    const [url, database, compression] = ["url", "database", "compression"].map((name) =>
      searchParams.get(name),
    );
    try {
      return Response.json(await smoke(sdk, url, database, compression));
    } catch (error) {
      return Response.json(String(error), { status: 500 });
    }
  },
};
