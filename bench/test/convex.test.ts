// The connector `convex` and the functions of `convex-app`, over the HTTP API of Convex.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Connector, NotRunning } from "../src/connectors/connector";
import { definition } from "../src/connectors/convex";
import { type ConvexBackend, startConvexBackend } from "./support/convex_backend";
import { testContext, withEnvironment } from "./support/preparation";
import { vectors } from "./support/vectors";

/** The requests of chapter 09 that go to another path than those of RPC servers: one transfer. */
const ofTheChapter = vectors<{ requests: { path?: string; body: string }[] }>("09-rpc.json").requests.filter(
  ({ path }) => path !== undefined,
);

const transfer = (connector: Connector, from: number, to: number, amount: number) =>
  connector.call("transfer:transfer", { amount, from_id: from, to_id: to });

describe("convex", () => {
  let backend: ConvexBackend;
  beforeEach(async () => {
    backend = await startConvexBackend();
  });
  afterEach(() => backend.close());

  async function ready(accounts = 200) {
    const context = testContext({ convexUrl: `${backend.url}/`, accounts });
    context.end();
    const prepared = await definition.prepare(context);
    const connector = definition.create(context.config, prepared);
    await connector.open(1);
    return { context, prepared, connector };
  }

  it("sends what the HTTP API wants", async () => {
    const { connector } = await ready();
    backend.requests.length = 0;
    await transfer(connector, 17, 42, 1);
    await connector.getAccount!(17);
    expect(backend.requests).toEqual([
      ...ofTheChapter.map(({ path, body }) => `POST ${path} ${body}`),
      'POST /api/query?format=json {"path":"accounts:get_account","args":{"id":17}}',
    ]);
  });

  it("transfers, verifies, and is seeded anew without duplicates", async () => {
    const { prepared, connector } = await ready();
    await expect(connector.verify!()).rejects.toThrow("no balance has changed");
    const worker = await connector.createWorker!({ index: 0, total: 1 });
    expect(await transfer(worker, 0, 1, 10)).toEqual({ applied: true });
    for (const [from, to, amount] of [
      [3, 3, 1],
      [3, 4, 0],
      [3, 4, 1001],
      [3, 4000, 1],
    ] as const) {
      expect(await transfer(worker, from, to, amount)).toEqual({ applied: false });
    }
    expect(await connector.getAccount!(0)).toEqual({ id: 0, balance: 990n });
    expect(await connector.getAccount!(1)).toEqual({ id: 1, balance: 1010n });
    expect(await connector.getAccount!(4000)).toBeNull();
    expect(await connector.verify!()).toEqual({ accounts: 200n, total: 200_000n, changed: 2n });
    expect(await connector.call("accounts:get_stats", { start: 1, count: 10, initial: 1000 })).toEqual({
      accounts: 10,
      total: 10_010,
      changed: 1,
    });
    await prepared.reseed!();
    expect(await connector.balances!()).toEqual(new BigInt64Array(200).fill(1000n));
  });

  it("seeds and clears in chunks that a function may write", async () => {
    const { connector } = await ready(9_000);
    const chunks = backend.requests.filter((request) => request.includes("seed:seed_range"));
    expect(chunks.map((request) => JSON.parse(request.slice(request.indexOf("{"))).args)).toEqual([
      { start: 0, count: 7000, initial: 1000 },
      { start: 7000, count: 2000, initial: 1000 },
    ]);
    expect(await connector.call("seed:clear_accounts")).toBe(4_000);
  });

  it("spreads transfers over sharded counters, and says that those cannot be verified", async () => {
    const { connector } = await ready();
    const args = { amount: 1, from_id: 17, to_id: 42 };
    expect(await connector.call("transfer:transfer_sharded", args)).toEqual({ applied: true });
    await withEnvironment({ CONVEX_USE_SHARDED_COUNTER: "1" }, () =>
      expect(connector.verify!()).rejects.toThrow("sharded counters cannot be read back"),
    );
  });

  it("reports what the backend says of a failure", async () => {
    const { connector } = await ready();
    backend.failNext(1, "OptimisticConcurrencyControlFailure");
    await expect(transfer(connector, 0, 1, 1)).rejects.toThrow("OptimisticConcurrencyControlFailure");
    await expect(connector.call("transfer:nothing")).rejects.toThrow("transfer:nothing failed");
  });
});

describe("convex that is not there", () => {
  it("is named, with its address", async () => {
    const context = testContext();
    context.end();
    const attempt = definition.prepare(context);
    await expect(attempt).rejects.toThrow(NotRunning);
    await expect(attempt).rejects.toThrow("no Convex at http://127.0.0.1:1");
  });

  it("is told from a server of another kind", async () => {
    const server = createServer((_, response) => response.writeHead(404).end("nothing here"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const context = testContext({ convexUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    context.end();
    const attempt = definition.prepare(context);
    await expect(attempt).rejects.toThrow(NotRunning);
    await expect(attempt).rejects.toThrow("HTTP 404 Not Found");
    server.close();
  });
});
