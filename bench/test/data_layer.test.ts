// data-layer and data-layer-crm: the loop inside the server, and that the verification can fail.

import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { Connector } from "../src/connectors/connector";
import { parseCommandLine } from "../src/opts";
import { operationTable } from "../src/report/tables";
import { sqliteCrm } from "../src/rpc-servers/crm/sqlite";
import { crmMethods } from "../src/rpc-servers/crm/store";
import { sqliteOrm } from "../src/rpc-servers/drizzle";
import { sqliteNotes } from "../src/rpc-servers/notes/sqlite";
import { drizzleStores, sqliteStores } from "../src/rpc-servers/stores";
import { loopCost } from "../src/workloads/data_layer/serial";
import { crmOps, dataLayerCrmWorkload } from "../src/workloads/data_layer_crm/workload";
import type { SystemUnderTest } from "../src/workloads/workload";

const root = { name: "root" } as Connector;
const throughDrizzle = (database: Database.Database) =>
  drizzleStores(sqliteOrm(database), sqliteStores(database));
const unused = undefined as never;

describe("the loop inside the server", () => {
  it("is as long as its clock needs", async () => {
    const asked: number[] = [];
    const run: SystemUnderTest["run"] = async (kind, args) => {
      expect(kind).toBe("bench_loop");
      asked.push(Number(args!["iters"]));
      // 3 microseconds each, and 500 for the call.
      return { ok: true, found: BigInt(3 * Number(args!["iters"]) + 500) };
    };
    const cost = await loopCost({ run }, 2);
    expect(cost).toBeCloseTo(3, 1);
    expect(asked.length).toBeGreaterThan(1);
    expect(asked.at(-1)! * 3).toBeGreaterThanOrEqual(100_000);
    expect(asked.at(-1)! * 3).toBeLessThan(1_000_000);
  });

  it("ends where the clock stands still", async () => {
    await expect(loopCost({ run: async () => ({ found: 0n }) }, 0)).resolves.toBe(0);
  });
});

describe("the table of operations", () => {
  const file = (system: string, systemClass: string, extras: object) => {
    const ops = { read: { ok: 2, mean_ms: 0.5 }, create_many: { ok: 1, mean_ms: 20 }, delete: { ok: 0 } };
    return { fairness: { systemClass }, results: [{ system, res: { ops, extras } }] } as never;
  };
  const rows_per_operation = { read: 1, create_many: 100, delete: 1 };

  it("is per row, with what reads cost inside the server", () => {
    const hot = { rows_per_operation, engine_hot_us: { read: 2.5 } };
    const cold = { rows_per_operation, engine_hot_us: {} };
    expect(operationTable([file("a", "full-stack", hot), file("b", "client-cache", cold)])).toBe(
      [
        "| Mean µs | a | a, engine-hot | b, reads from the client-cache |",
        "| --- | --- | --- | --- |",
        "| read | 500 | 2.50 | 500 |",
        "| create_many, per row (100) | 200 | – | 200 |",
        "| delete | – | – | – |",
      ].join("\n"),
    );
  });

  it("is not there for other tests", () => {
    expect(operationTable([file("a", "full-stack", {})])).toBe("");
  });
});

describe.each([
  ["statements", sqliteNotes],
  ["Drizzle", (database: Database.Database) => throughDrizzle(database).notes()],
])("notes in SQLite by %s", (_, storeOf) => {
  it("are the same", async () => {
    const store = storeOf(new Database(":memory:"));
    await store.seed(6, 2, "group");
    expect(await store.create("seventh")).toBe(7);
    await store.createBare("eighth");
    await store.createMany(["ninth", "tenth"]);
    await store.update(1, "first");
    await store.delete(6);
    await store.updateMany("group", "of the group");
    expect(await store.get(1)).toEqual({ id: 1, title: "of the group", deleted: false });
    expect(await store.get(3)).toEqual({ id: 3, title: "note 2", deleted: false });
    expect(await store.get(11)).toBeUndefined();
    expect((await store.findMany(6)).map(({ id }) => id)).toEqual([10, 9, 8, 7, 5, 4]);
    expect(await store.count()).toBe(9);
    await store.deleteMany("group");
    expect(await store.count()).toBe(7);
    const [newest, , , , fifth] = await store.findInclude(5);
    expect(newest).toEqual({ id: 10, title: "tenth", deleted: false, tags: [] });
    expect(fifth).toEqual({ id: 5, title: "note 4", deleted: false, tags: ["other", "tag 1", "tag 2"] });
    // One each for create, update, delete, update_many and delete_many, and two for create_many.
    expect(await store.events()).toBe(7);
  });
});

/** A run of data-layer-crm on SQLite in memory, loaded. */
async function loadedCrm(storeOf: typeof sqliteCrm, pragmas: string[] = []) {
  const database = new Database(":memory:");
  const store = storeOf(database);
  const methods = crmMethods(store);
  const ops = crmOps(() => (name, args) => methods[name]!(args));
  const run: SystemUnderTest["run"] = (kind, args = {}) => ops[kind]!(root, args);
  const system = { run } as SystemUnderTest;
  const { config } = parseCommandLine("bench", ["data-layer-crm"], {})!;
  const workloadRun = dataLayerCrmWorkload.runs(config)[0]!.create();
  await workloadRun.load(system);
  // The verification refers to the first deal.
  store.create("deal", {
    ...{ title: "a", stage: "open", amount: 1, companyId: 1, contactId: 1, closeAt: 0 },
  });
  for (const pragma of pragmas) database.pragma(pragma);
  return { run, verify: () => workloadRun.verify(system, unused) };
}

describe.each([
  ["statements", sqliteCrm],
  ["Drizzle", (database: Database.Database) => throughDrizzle(database).crm()],
])("the verification of data-layer-crm in SQLite by %s", (_, storeOf) => {
  it("counts the rows of every table", async () => {
    const { verify } = await loadedCrm(storeOf);
    expect(await verify()).toEqual({
      ok: false,
      message:
        "there are 100 companies, 1000 contacts, 5000 leads, 1 deals, 1 activities, 2 events instead of " +
        "100 companies, 1000 contacts, 5000 leads, 0 deals, 1 activities, 1 events",
    });
  });

  it.each([
    ["foreign_keys = OFF", "a contact of no company was accepted"],
    ["ignore_check_constraints = ON", "a lead with an unknown status was accepted"],
  ])("notices %s", async (pragma, message) => {
    const { verify } = await loadedCrm(storeOf, [pragma]);
    expect(await verify()).toEqual({ ok: false, message });
  });

  it("looks at what reads answer", async () => {
    const { run } = await loadedCrm(storeOf);
    await expect(run("find_unique_contact", { id: 1000 })).resolves.toEqual({ ok: true });
    await expect(run("find_unique_contact", { id: 1001 })).rejects.toThrow("the answer is wrong");
    await expect(run("find_many_contact", { companyId: 100, limit: 20 })).resolves.toEqual({
      ok: true,
    });
    await expect(run("find_many_contact", { companyId: 100, limit: 9 })).rejects.toThrow("wrong");
    await expect(run("find_many_lead", { status: "qualified", limit: 2000 })).rejects.toThrow("wrong");
  });
});

describe("the RPC methods of data-layer-crm", () => {
  const methods = crmMethods(throughDrizzle(new Database(":memory:")).crm());
  const call = async (name: string, args: Record<string, unknown>) => methods[name]!(args);

  it("say which argument makes no sense", async () => {
    await call("crm_seed", { companies: 2, contacts: 4, leads: 8 });
    await expect(call("crm_seed", { companies: 2, contacts: 4 })).rejects.toThrow("invalid leads");
    await expect(call("crm_create_leads", { leads: [{ title: "a" }] })).rejects.toThrow("invalid source");
    await expect(call("crm_find_leads", { status: "new", limit: -1 })).rejects.toThrow("invalid limit");
    await expect(call("crm_find_contacts", { companyId: "1", limit: 9 })).rejects.toThrow(
      "invalid companyId",
    );
    expect(await call("crm_find_contacts", { companyId: 2, limit: 9 })).toMatchObject([{ id: 2 }, { id: 4 }]);
    expect(await call("crm_get_contact", { id: 5 })).toBeNull();
    expect(await call("crm_counts", {})).toMatchObject({ companies: 2, contacts: 4, leads: 8, events: 0 });
  });
});
