// Short runs of the other workloads, from the command to their files.

import { describe, expect, it } from "vitest";
import { benchInTest } from "./support/workload_bench";

/** In the order of their names. */
const withoutModule = [
  ...["bun", "postgres_direct", "postgres_drizzle_direct"],
  ...["postgres_rpc", "sqlite_direct", "sqlite_rpc"],
];

describe("data-layer", () => {
  it("measures each operation, and its log is complete", async () => {
    const { code, said, files } = await benchInTest(
      `data-layer --iters 3 --connectors ${withoutModule.join(",")}`,
    );
    expect(code).toBe(0);
    expect(files.map((file) => file.results[0]!.system)).toEqual(withoutModule);
    for (const file of files) {
      const { ops, errors } = file.results[0]!.res;
      expect(errors).toBe(0);
      expect(Object.keys(ops)).toHaveLength(12);
      expect(ops["create"]).toMatchObject({ count: 3, ok: 3 });
      expect(ops["create_many"]).toMatchObject({ count: 1, ok: 1 });
    }
    // Warm-up included: create, update_one and delete_one 6 each, create_many 4 of 100, the two of many rows 4 each.
    const passed = said.filter((line) => line === "Verification passed: the log has 426 entries");
    expect(passed).toHaveLength(withoutModule.length);
  }, 300_000);
});

describe("data-layer-crm", () => {
  it("keeps every row and refuses what refers to nothing", async () => {
    const { code, said, files } = await benchInTest(
      `data-layer-crm --iters 3 --connectors ${withoutModule.join(",")}`,
    );
    expect(code).toBe(0);
    expect(files.map((file) => file.results[0]!.system)).toEqual(withoutModule);
    for (const file of files) {
      const { ops, errors } = file.results[0]!.res;
      expect(errors).toBe(0);
      expect(Object.keys(ops)).toHaveLength(7);
      expect(ops["mixed"]).toMatchObject({ count: 3, ok: 3 });
      expect(ops["create_many_lead"]).toMatchObject({ count: 1, ok: 1 });
    }
    const passed = said.filter(
      (line) =>
        line ===
        "Verification passed: 106 companies, 1006 contacts, 5200 leads, 6 deals, 1 activities, 219 events",
    );
    expect(passed).toHaveLength(withoutModule.length);
  }, 300_000);
});

describe("http-floor", () => {
  it("asks Node and Bun", async () => {
    const { code, files } = await benchInTest(
      "http-floor --connectors node_http,bun_http --seconds 0.3 --concurrency 4 --samples 1",
    );
    expect(code).toBe(0);
    expect(files.map((file) => file.results[0]!.system)).toEqual(["bun_http", "node_http"]);
    for (const file of files) expect(file.results[0]!.res.samples).toBeGreaterThan(10);
  });
});

describe("content-crud", () => {
  it("ends with code 3 where the server that was asked for is not running", async () => {
    const { code, said } = await benchInTest(
      "content-crud --connectors rest_url --base-url http://127.0.0.1:1",
    );
    expect(code).toBe(3);
    expect(said.at(-1)).toContain("not running: nothing answers at http://127.0.0.1:1");
  });

  it("writes the figures of its published shape", async () => {
    const { code, files } = await benchInTest(
      "content-crud --connectors node_rest_memory --tests 10 --concurrency 4",
    );
    expect(code).toBe(0);
    const { extras, samples } = files[0]!.results[0]!.res;
    expect(samples).toBe(60);
    expect(extras["report"]).toMatchObject({
      TEST_LIMIT: 10,
      TEST_PARALLEL: 4,
      N_BATCHES: 3,
      testCount: { error: 0, success: 10, total: 10 },
      createElapsed: { count: 10 },
      readElapsed: { count: 30 },
      requestElapsed: { count: 60 },
      serverElapsed: { count: 60 },
      requests: { totalCount: 60 },
    });
  });
});
