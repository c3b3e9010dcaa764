// Short runs of the workloads on this repository's server: with its own SDK and with the published one, and with modules in
// both languages. LIGHTCONE_BIN names a built `spacetime`; without it, it is built.

import { describe, expect, it } from "vitest";
import { benchInTest } from "./support/workload_bench";

/** Building a Rust module takes less than one. */
const minutes = 60_000;

const systems = ["lightcone", "spacetimedb", "spacetimedb_rust"];

describe.each([
  ["ycsb-a --records 200 --ops 400 --concurrency 4", 400],
  ["ycsb-d --records 200 --ops 400 --concurrency 4", 400],
  ["ycsb-e --records 200 --ops 200 --concurrency 4", 200],
  ["ycsb-f --records 200 --ops 400 --concurrency 4", 400],
  ["content-crud --tests 20 --concurrency 4", 120],
  ["job-queue --jobs 100 --concurrency 4", 200],
  ["job-lease --jobs 500 --concurrency 4", 10],
  // Nine kinds of operations four times, and three over many rows once.
  ["data-layer --iters 4", 39],
])("%s", (words, operations) => {
  it(
    "is verified with both clients and both languages",
    async () => {
      const { code, files } = await benchInTest(`${words} --samples 1 --connectors ${systems.join(",")}`);
      expect(code).toBe(0);
      expect(files.map((file) => file.results[0]!.system)).toEqual(systems);
      for (const file of files) {
        const { res } = file.results[0]!;
        expect(res).toMatchObject({ samples: operations, errors: 0, timeouts: 0, invalid: [] });
        expect(res.verify).toMatchObject({ ran: true, ok: true });
        expect(res.cpu!.server).not.toBeNull();
        expect(file.fairness).toMatchObject({ isolation: "serializable", transport: "WebSocket by ws" });
      }
    },
    3 * minutes,
  );
});

it(
  "authed-load is verified in each of its scenarios",
  async () => {
    const words = "authed-load --seconds 0.5 --warmup-sec 0 --concurrency 3 --samples 1";
    const { code, files } = await benchInTest(`${words} --connectors ${systems.join(",")}`);
    expect(code).toBe(0);
    const rows = files.map(({ results: [entry] }) => `${entry!.system} ${entry!.parameters["scenario"]}`);
    expect(new Set(rows).size).toBe(4 * systems.length);
    for (const file of files) {
      const { res } = file.results[0]!;
      expect(res.samples).toBeGreaterThan(0);
      expect(res).toMatchObject({ errors: 0, timeouts: 0, invalid: [] });
      expect(res.verify).toMatchObject({ ran: true, ok: true });
    }
  },
  3 * minutes,
);

describe.each([
  ["data-layer --iters 4", ["find_many", "find_unique", "count", "find_many_include"]],
  ["data-layer-crm --iters 4", ["find_many_lead", "find_many_contact", "find_unique_contact"]],
])("%s", (words, reads) => {
  it(
    "measures reads inside the server",
    async () => {
      const { code, files } = await benchInTest(`${words} --connectors ${systems.join(",")}`);
      expect(code).toBe(0);
      expect(files).toHaveLength(systems.length);
      for (const file of files) {
        const { res } = file.results[0]!;
        expect(res).toMatchObject({ errors: 0, invalid: [], verify: { ran: true, ok: true } });
        const hot = res.extras["engine_hot_us"] as Record<string, number>;
        expect(Object.keys(hot)).toEqual(reads);
        for (const kind of reads) expect(hot[kind]).toBeGreaterThan(0);
      }
    },
    3 * minutes,
  );
});
