// content-crud: its ids, its sequence, and its servers.

import { describe, expect, it } from "vitest";
import type { Connector } from "../src/connectors/connector";
import { routesDefinition } from "../src/connectors/content_routes";
import { RestConnector } from "../src/connectors/rest";
import { ulid } from "../src/rpc-servers/content/ulid";
import { loadConnector } from "../src/tests/find";
import { contentRestOps, contentRoutesOps, contentRpcOps, routePathOf } from "../src/workloads/content/ops";
import { changeOf, contentOf, runTest } from "../src/workloads/content/workload";
import type { Operation, Outcome } from "../src/workloads/workload";
import { testContext, withEnvironment } from "./support/preparation";
import { tested, vectors } from "./support/vectors";

interface UlidVectors {
  ulids: { milliseconds: number; random_hex: string; text: string }[];
}

const { ulids } = vectors<UlidVectors>("09-workloads.json");

describe("ids", () => {
  it("are ULIDs", () => {
    for (const { milliseconds, random_hex, text } of tested(ulids)) {
      expect(ulid(milliseconds, Uint8Array.from(Buffer.from(random_hex, "hex")))).toBe(text);
    }
    expect(ulid(1_700_000_000_000, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 33))).toBe(
      "01HF7YAT000000000000000011",
    );
    expect(new Set(Array.from({ length: 1000 }, () => ulid())).size).toBe(1000);
  });
});

describe("the sequence", () => {
  it("has six steps, the last of which finds nothing", async () => {
    const steps: Operation[] = [];
    const perform = async (operation: Operation): Promise<Outcome> => {
      steps.push(operation);
      return { ok: true, found: "id-1" };
    };
    expect(await runTest(perform, 7, false)).toBe(true);
    const content = {
      title: "Smoke Test Content 7",
      body: "This is smoke test content number 7",
      author: "Smoke Tester",
      status: "draft",
    };
    const change = {
      title: "Smoke Test Content 7 updated",
      body: "This is smoke test content number 7 updated",
      status: "published",
    };
    expect(steps).toEqual([
      { kind: "create", args: { content } },
      { kind: "read", args: { id: "id-1", expected: content } },
      { kind: "update", args: { id: "id-1", change } },
      { kind: "read", args: { id: "id-1", expected: { ...content, ...change } } },
      { kind: "delete", args: { id: "id-1" } },
      { kind: "read", args: { id: "id-1", expected: null } },
    ]);
  });

  it("fails as a whole when one step fails", async () => {
    let count = 0;
    const perform = async (): Promise<Outcome | undefined> =>
      ++count === 3 ? undefined : { ok: true, found: "1" };
    expect(await runTest(perform, 0, true)).toBe(false);
    expect(count).toBe(6);
  });
});

describe.each(["node_rest_sqlite", "node_rest_postgres", "node_rest_memory"])("%s", (key) => {
  it("serves the routes of the chapter", async () => {
    const context = { ...testContext({ sqliteDurability: "full" }), test: "content-crud" };
    const definition = await loadConnector(key);
    const prepared = await withEnvironment({ PG_URL: undefined }, () => definition.prepare(context));
    try {
      const connector = definition.create(context.config, prepared) as RestConnector;
      const created = await connector.request("POST", "/content", contentOf(1, true));
      expect(created.status).toBe(201);
      const { id } = created.body as { id: string };
      expect(id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
      const found = await connector.request("GET", `/content/${id}`);
      expect(found).toMatchObject({ status: 200, body: { id, status: "draft", data: { run_id: 1 } } });
      const changed = await connector.request("PUT", `/content/${id}`, changeOf(contentOf(1, true)));
      expect(changed).toMatchObject({
        status: 200,
        body: { id, status: "published", author: "Smoke Tester", data: { run_id: 1 } },
      });
      expect((await connector.request("DELETE", `/content/${id}`)).status).toBe(204);
      for (const method of ["GET", "DELETE"]) {
        expect((await connector.request(method, `/content/${id}`)).status).toBe(404);
      }
      expect((await connector.request("PUT", `/content/${id}`, { title: "x" })).status).toBe(404);
      expect((await connector.request("POST", "/content", { title: "no body" })).status).toBe(400);
      expect((await connector.request("GET", "/elsewhere")).status).toBe(404);
      expect(connector.serverElapsed.count).toBe(9);

      const perform = ({ kind, args }: Operation) => contentRestOps[kind]!(connector as Connector, args);
      expect(await runTest(perform, 2, true)).toBe(true);
    } finally {
      await prepared.stop();
      context.end();
    }
  });
});

describe.each([
  ["content-ts", "TypeScript"],
  ["content-rs", "Rust"],
])("HTTP handlers of %s", (directory, language) => {
  it("serve the routes of the chapter", async () => {
    const settings = { stdbModule: "test-1", stdbConfirmedReads: true, stdbCompression: "none" } as const;
    const context = { ...testContext(settings), test: "content-crud" };
    const definition = routesDefinition(directory, language);
    const prepared = await definition.prepare(context);
    try {
      expect(prepared.fairness).toMatchObject({
        durability: "synced before the answer (group commit)",
        transport: "HTTP",
      });
      const connector = definition.create(context.config, prepared) as RestConnector;
      const refused = (error: string) => ({ status: 400, body: { error } });
      const notFound = { status: 404, body: { error: "not found" } };

      const before = Date.now();
      const created = await connector.request("POST", "/content", contentOf(1, true));
      const { id, created_at, ...rest } = created.body as Record<string, string>;
      expect(created.status).toBe(201);
      expect(id).toMatch(/^01[0-9A-HJKMNP-TV-Z]{24}$/);
      // Of the time of the call, as the time in the record.
      expect(id!.slice(0, 10)).toBe(ulid(Date.parse(created_at!)).slice(0, 10));
      expect(Date.parse(created_at!)).toBeGreaterThanOrEqual(before - 1);
      expect(rest).toEqual({ ...contentOf(1, true), data: expect.anything(), updated_at: created_at });
      const found = await connector.request("GET", routePathOf(id!));
      expect(found).toEqual({ status: 200, body: created.body });

      const changed = await connector.request("PUT", routePathOf(id!), changeOf(contentOf(1, true)));
      expect(changed).toMatchObject({
        status: 200,
        body: { id, status: "published", author: "Smoke Tester", created_at, data: { run_id: 1 } },
      });
      expect((await connector.request("GET", routePathOf(id!))).body).toEqual(changed.body);
      expect(await connector.request("PUT", routePathOf(id!), { title: 7 })).toEqual(
        refused("title is no text"),
      );
      expect((await connector.request("GET", routePathOf(id!))).body).toEqual(changed.body);
      expect(await connector.request("DELETE", routePathOf(id!))).toEqual({ status: 204, body: undefined });
      for (const method of ["GET", "DELETE"]) {
        expect(await connector.request(method, routePathOf(id!))).toEqual(notFound);
      }
      expect(await connector.request("PUT", routePathOf(id!), { title: "x" })).toEqual(notFound);

      const withoutId = refused("id is needed: /content?id=<id>");
      for (const path of ["/content", "/content?id=", "/content?identity=1"]) {
        expect(await connector.request("GET", path)).toEqual(withoutId);
      }
      const post = (body: unknown) => connector.request("POST", "/content", body);
      expect(await post({ title: "no body" })).toEqual(refused("title and body are needed"));
      expect(await post({ title: "t", body: null })).toEqual(refused("title and body are needed"));
      expect(await post({ title: "t", body: "b", author: 1 })).toEqual(refused("author is no text"));
      expect(await post([1])).toEqual(refused("the body is no JSON object"));
      expect(await post(undefined)).toEqual(refused("the body is no JSON"));

      const many = await Promise.all(Array.from({ length: 50 }, () => post({ title: "t", body: "b" })));
      expect(many[0]).toMatchObject({ status: 201, body: { author: null, status: null, data: null } });
      expect(new Set(many.map(({ body }) => (body as { id: string }).id)).size).toBe(50);

      const perform = async ({ kind, args }: Operation) => contentRoutesOps[kind]!(connector, args);
      expect(await runTest(perform, 2, true)).toBe(true);
    } finally {
      await prepared.stop();
      context.end();
    }
  }, 180_000);
});

describe.each(["sqlite_rpc", "postgres_rpc", "bun"])("%s", (key) => {
  it("has methods of the same names", async () => {
    const context = { ...testContext({ sqliteDurability: "full" }), test: "content-crud" };
    const definition = await loadConnector(key);
    const unset = { PG_URL: undefined, BUN_PG_URL: undefined };
    const prepared = await withEnvironment(unset, () => definition.prepare(context));
    try {
      const connector = definition.create(context.config, prepared);
      await connector.open(1);
      const run = (kind: string, args: Record<string, unknown> = {}) => contentRpcOps[kind]!(connector, args);
      await run("clear");
      const perform = ({ kind, args }: Operation) => run(kind, args);
      expect(await runTest(perform, 1, true)).toBe(true);
      const { found: id } = await run("create", { content: contentOf(2, true) });
      const record = await connector.call("content_get", { id });
      expect(record).toMatchObject({ id, title: "Smoke Test Content 2", data: { run_id: 2 } });
      await run("clear");
      const expected = contentOf(2, true);
      await expect(run("read", { id, expected })).rejects.toThrow("read null instead of");
      await expect(run("update", { id, change: changeOf(expected) })).rejects.toThrow("to change");
      await expect(run("delete", { id })).rejects.toThrow("to delete");
      await expect(connector.call("content_create", { title: "no body" })).rejects.toThrow("are needed");
    } finally {
      await prepared.stop();
      context.end();
    }
  });
});

describe("reads", () => {
  it("fail when something else was found", async () => {
    const connector = new RestConnector("mock", "http://unused");
    connector.request = async () => ({ status: 200, body: { ...contentOf(1, false), title: "another" } });
    const read = contentRestOps["read"]!;
    await expect(read(connector, { id: "1", expected: contentOf(1, false) })).rejects.toThrow("instead of");
    await expect(read(connector, { id: "1", expected: null })).rejects.toThrow("instead of null");
  });
});
