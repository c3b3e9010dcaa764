// The connectors of the Postgres class against a real PostgreSQL and, for bun, the real Bun.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Connector, NotRunning } from "../src/connectors/connector";
import type { ConnectorDefinition, Prepared } from "../src/connectors/definition";
import { definition as postgresDirect } from "../src/connectors/postgres_direct";
import { rpcSystem } from "../src/connectors/rpc/systems";
import { packageDirectory } from "../src/init/commands";
import { startCluster } from "../src/init/postgres_cluster";
import { findPostgres } from "../src/init/postgres_programs";
import { type TestContext, testContext, withEnvironment } from "./support/preparation";

const postgres = rpcSystem("postgres_rpc");
const postgresSproc = rpcSystem("postgres_sproc_rpc");
const bun = rpcSystem("bun");
const cockroach = rpcSystem("cockroach_rpc");
const planetscale = rpcSystem("planetscale_pg_rpc");
const supabase = rpcSystem("supabase_rpc");
const postgresReadCommitted = rpcSystem("postgres_rpc_read_committed");
const postgresSprocReadCommitted = rpcSystem("postgres_sproc_rpc_read_committed");

/** Nothing of the machine's environment reaches the preparations. */
const noEnvironment = Object.fromEntries(
  [
    ...["PG_URL", "PG_RPC_URL", "PG_SPROC_RPC_URL", "BUN_PG_URL", "BUN_URL", "CRDB_URL", "CRDB_RPC_URL"],
    ...["SUPABASE_URL", "SUPABASE_DB_URL", "SUPABASE_RPC_URL", "PLANETSCALE_PG_URL", "PLANETSCALE_RPC_URL"],
  ].map((name) => [name, undefined]),
);

async function prepare(
  definition: ConnectorDefinition,
  context: TestContext,
  environment: Record<string, string | undefined> = {},
): Promise<Prepared> {
  return withEnvironment({ ...noEnvironment, ...environment }, () => definition.prepare(context));
}

const transfer = (connector: Connector, from: number, to: number, amount: number) =>
  connector.call("transfer", { amount, from_id: from, to_id: to });

/** What every connector of the class must do. */
async function exercise(
  definition: ConnectorDefinition,
  context: TestContext,
  prepared: Prepared,
): Promise<void> {
  const connector = definition.create(context.config, prepared);
  await connector.open(2);
  try {
    await expect(connector.verify!()).rejects.toThrow("no balance has changed");
    const worker = await connector.createWorker!({ index: 0, total: 2 });
    expect(await transfer(worker, 0, 1, 10)).toEqual({ applied: true });
    expect(await transfer(worker, 3, 3, 10)).toEqual({ applied: false });
    expect(await transfer(worker, 3, 4, 0)).toEqual({ applied: false });
    expect(await transfer(worker, 5, 6, 1001)).toEqual({ applied: false });
    await expect(transfer(worker, 0, 5000, 1)).rejects.toThrow();
    await expect(transfer(worker, 0.5, 1, 1)).rejects.toThrow("invalid transfer args");
    expect(await connector.getAccount!(0)).toEqual({ id: 0, balance: 990n });
    expect(await connector.getAccount!(5000)).toBeNull();

    // Many at once on few accounts: conflicts are retried, none is lost.
    const pairs = Array.from({ length: 60 }, (_, index) => [index % 5, ((index * 3) % 5) + 5] as const);
    await Promise.all(pairs.map(([from, to]) => transfer(worker, from, to, 1)));
    expect(await connector.verify!()).toMatchObject({ accounts: 200n, total: 200_000n });
    const expected = new BigInt64Array(200).fill(1000n);
    expected[0]! -= 10n;
    expected[1]! += 10n;
    for (const [from, to] of pairs) {
      expected[from]! -= 1n;
      expected[to]! += 1n;
    }
    expect(await connector.balances!()).toEqual(expected);
    await worker.close();

    await prepared.reseed!();
    await expect(connector.verify!()).rejects.toThrow("no balance has changed");
  } finally {
    await connector.close();
  }
}

describe.each([
  { definition: postgres, systemClass: "full-stack", transport: "HTTP", roundTripsPerTx: 5 },
  { definition: postgresSproc, systemClass: "full-stack", transport: "HTTP", roundTripsPerTx: 1 },
  { definition: bun, systemClass: "full-stack", transport: "HTTP", roundTripsPerTx: 5 },
  ...[postgresReadCommitted, postgresSprocReadCommitted].map((definition, i) => ({
    ...{ definition, systemClass: "full-stack", transport: "HTTP", roundTripsPerTx: [5, 1][i] },
    isolation: "read committed",
  })),
  { definition: postgresDirect, systemClass: "database-direct", transport: "pg wire", roundTripsPerTx: 5 },
])("$definition.key with a cluster of its own", ({ definition, ...columns }) => {
  it("starts, transfers, verifies, and leaves nothing behind", async () => {
    const context = testContext();
    try {
      const prepared = await prepare(definition, context);
      expect(prepared.fairness).toMatchObject({
        isolation: "serializable",
        ...columns,
        durability: "synchronous_commit=on fsync=on commit_delay=0",
        poolMax: 8,
        colocated: true,
      });
      expect(prepared.software["database"]).toMatch(/^PostgreSQL \d+/);
      await exercise(definition, context, prepared);
      const processes = prepared.processes()!;
      expect(processes.length).toBeGreaterThan(0);
      const directory = prepared.dataDirectory!;
      expect(existsSync(directory)).toBe(true);
      await prepared.stop();
      expect(existsSync(directory)).toBe(false);
      for (const pid of processes) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
    } finally {
      context.end();
    }
  });
});

describe("postgres_rpc", () => {
  it("takes its settings from the flags", async () => {
    const context = testContext({ pgIsolation: "read-committed", durability: "off", poolMax: 120 });
    try {
      const prepared = await prepare(postgres, context);
      expect(prepared.fairness).toMatchObject({
        systemClass: "not-durable",
        isolation: "read committed",
        durability: "synchronous_commit=off fsync=off commit_delay=0",
        poolMax: 120,
      });
      await prepared.stop();
    } finally {
      context.end();
    }
  });

  it("takes other settings from PG_SETTINGS", async () => {
    const context = testContext();
    try {
      const prepared = await prepare(postgres, context, {
        PG_SETTINGS: "commit_delay=2000 commit_siblings=2",
      });
      expect(prepared.fairness.durability).toBe("synchronous_commit=on fsync=on commit_delay=2000");
      await prepared.stop();
      const wrong = prepare(postgres, context, { PG_SETTINGS: "commit_delay" });
      await expect(wrong).rejects.toThrow("commit_delay is none");
    } finally {
      context.end();
    }
  });

  it("keeps what it acknowledged when the database is killed", async () => {
    const context = testContext();
    try {
      const prepared = await prepare(postgres, context);
      const connector = postgres.create(context.config, prepared);
      await connector.open(1);
      const before = prepared.processes()!.at(-1);
      expect(await transfer(connector, 0, 1, 7)).toEqual({ applied: true });
      // Whatever is on its way when the database dies: acknowledged, refused, or of unknown outcome, but answered.
      const onTheirWay = Array.from({ length: 30 }, (_, index) =>
        transfer(connector, 10 + index, 50 + index, 1).then(
          () => "acknowledged",
          (error: Error) => error.message,
        ),
      );
      await prepared.crash!();
      for (const outcome of await Promise.all(onTheirWay)) {
        expect(outcome).toMatch(/^acknowledged$|failed: internal server error$|outcome unknown/);
      }
      expect(prepared.processes()!.at(-1)).not.toBe(before);
      // The first call may meet a connection of the pool that has not noticed yet.
      await transfer(connector, 2, 3, 1).catch(() => undefined);
      expect(await transfer(connector, 0, 1, 1)).toEqual({ applied: true });
      expect(await connector.getAccount!(0)).toEqual({ id: 0, balance: 992n });
      await prepared.stop();
    } finally {
      context.end();
    }
  });
});

describe("databases that are not the suite's", () => {
  const context = testContext();
  let cluster: Awaited<ReturnType<typeof startCluster>>;

  beforeAll(async () => {
    const programs = await findPostgres(context.say);
    cluster = await startCluster({ ...context, programs, settings: {} });
  });
  afterAll(async () => {
    await cluster?.stop();
    context.end();
  });

  /** A database of its own, so that tests do not share the table. */
  async function database(name: string): Promise<string> {
    const client = new pg.Client(cluster.url);
    await client.connect();
    await client.query(`CREATE DATABASE ${name}`);
    await client.end();
    return cluster.url.replace(/postgres$/, name);
  }

  it.each([
    { definition: postgres, variable: "PG_URL", isolation: "serializable" },
    { definition: postgresSproc, variable: "PG_URL", isolation: "serializable" },
    { definition: postgresDirect, variable: "PG_URL", isolation: "serializable" },
    { definition: bun, variable: "BUN_PG_URL", isolation: "serializable" },
    { definition: cockroach, variable: "CRDB_URL", isolation: "read committed" },
    { definition: planetscale, variable: "PLANETSCALE_PG_URL", isolation: "read committed" },
    { definition: supabase, variable: "SUPABASE_DB_URL", isolation: "read committed" },
  ])("$definition.key uses $variable", async ({ definition, variable, isolation }) => {
    const url = await database(`found_${definition.key}`);
    const prepared = await prepare(definition, context, { [variable]: url });
    try {
      expect(prepared.fairness.isolation).toBe(isolation);
      await exercise(definition, context, prepared);
    } finally {
      await prepared.stop();
    }
    expect(context.said.join("\n")).not.toContain(new URL(url).password);
  });

  it.each([
    { definition: postgres, variable: "PG_URL", banner: "pg drizzle rpc server" },
    { definition: postgresSproc, variable: "PG_URL", banner: "pg stored procedure rpc server" },
    { definition: bun, variable: "BUN_PG_URL", banner: "bun drizzle rpc server" },
    { definition: cockroach, variable: "CRDB_URL", banner: "cockroach drizzle rpc server" },
    { definition: supabase, variable: "SUPABASE_DB_URL", banner: "supabase drizzle rpc server" },
  ])("$banner speaks the wire format", async ({ definition, variable, banner }) => {
    const prepared = await prepare(definition, context, {
      [variable]: await database(`wire_${definition.key}`),
    });
    try {
      const { url } = prepared;
      const root = await fetch(url);
      expect([root.status, await root.text()]).toEqual([200, banner]);
      expect((await fetch(`${url}/rpc`)).status).toBe(404);
      const post = async (body: string) => {
        const answer = await fetch(`${url}/rpc`, { method: "POST", body });
        expect(answer.headers.get("content-type")).toBe("application/json");
        return [answer.status, await answer.json()];
      };
      expect(await post("{")).toEqual([400, { ok: false, error: "invalid json" }]);
      expect(await post("{}")).toEqual([500, { ok: false, error: "missing name" }]);
      expect(await post('{"name":"x"}')).toEqual([500, { ok: false, error: "unknown method: x" }]);
      expect(await post('{"name":"health"}')).toEqual([200, { ok: true, result: { status: "ok" } }]);
      expect(await post('{"name":"getAccount","args":{"id":17}}')).toEqual([
        200,
        { ok: true, result: { id: 17, balance: "1000" } },
      ]);
      expect(await post('{"name":"getAccount","args":{"id":"x"}}')).toEqual([
        500,
        { ok: false, error: "invalid id" },
      ]);
      const ids = '{"amount":1,"from_id":17,"to_id":42}';
      expect(await post(`{"name":"transfer","args":${ids}}`)).toEqual([
        200,
        { ok: true, result: { applied: true } },
      ]);
      // The text of errors of the database stays inside.
      const [status, answer] = await post('{"name":"transfer","args":{"amount":1,"from":17,"to":4200}}');
      expect(status).toBe(500);
      expect((answer as { error: string }).error).toMatch(/^internal (server )?error$/);
    } finally {
      await prepared.stop();
    }
  });

  it("of Supabase are ready when the gateway knows the functions", async () => {
    const asked: string[] = [];
    const gateway = createServer((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers["apikey"]}`);
      // Not known at first, as the real one until it has read the schema again.
      response.writeHead(request.method === "POST" && asked.length < 4 ? 404 : 200).end("{}");
    });
    await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
    const prepared = await prepare(supabase, context, {
      SUPABASE_DB_URL: await database("gateway"),
      SUPABASE_URL: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`,
      SUPABASE_ANON_KEY: "anonymous",
    });
    await prepared.stop();
    gateway.close();
    const transferRequest = "POST /rest/v1/rpc/transfer anonymous";
    expect(asked).toEqual(["GET /rest/v1/ anonymous", transferRequest, transferRequest, transferRequest]);
  });

  it("retries what the database refuses, up to ten attempts", async () => {
    const url = await database("faulty");
    const prepared = await prepare(cockroach, context, { CRDB_URL: url });
    const client = new pg.Client(url);
    await client.connect();
    try {
      // Every refusal is a real one of the database; a sequence counts on when the transaction is rolled back.
      await client.query(`
        CREATE SEQUENCE faults;
        CREATE TABLE wanted (faults bigint);
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF nextval('faults') <= (SELECT max(wanted.faults) FROM wanted) THEN
            RAISE EXCEPTION 'restart transaction' USING ERRCODE = '40001';
          END IF;
          RETURN NEW;
        END $$;
        CREATE TRIGGER refuse BEFORE UPDATE ON accounts FOR EACH ROW WHEN (NEW.id = 0) EXECUTE FUNCTION refuse();`);
      const refuse = async (faults: number) => {
        await client.query("ALTER SEQUENCE faults RESTART");
        await client.query("TRUNCATE wanted");
        await client.query("INSERT INTO wanted VALUES ($1)", [faults]);
      };
      const connector = cockroach.create(context.config, prepared);
      await connector.open(1);

      await refuse(9);
      expect(await transfer(connector, 0, 1, 1)).toEqual({ applied: true });
      expect(await connector.call("describe")).toMatchObject({ retries: 9 });

      await refuse(10);
      await expect(transfer(connector, 0, 1, 1)).rejects.toThrow("internal server error");
      const { rows } = await client.query<{ last_value: string }>("SELECT last_value FROM faults");
      expect(rows[0]?.last_value).toBe("10");
      expect(await connector.getAccount!(0)).toEqual({ id: 0, balance: 999n });
      expect(await connector.getAccount!(1)).toEqual({ id: 1, balance: 1001n });
    } finally {
      await client.end();
      await prepared.stop();
    }
  });

  it("are named when they cannot be reached", async () => {
    for (const definition of [cockroach, planetscale, supabase]) {
      await expect(prepare(definition, context)).rejects.toThrow(NotRunning);
    }
    await expect(prepare(cockroach, context)).rejects.toThrow("CRDB_URL is not set");
    await expect(prepare(supabase, context)).rejects.toThrow("nothing listens at 127.0.0.1:54322");
    const wrong = new URL(cluster.url);
    wrong.password = "wrong";
    const attempt = prepare(cockroach, context, { CRDB_URL: wrong.href });
    await expect(attempt).rejects.toThrow("password authentication failed");
    await expect(prepare(cockroach, context, { CRDB_URL: "nonsense" })).rejects.toThrow("is no URL");
  });

  it("are used through an RPC server that runs already", async () => {
    const url = await database("twice");
    const first = await prepare(postgres, context, { PG_URL: url });
    try {
      const second = await prepare(postgres, context, { PG_RPC_URL: first.url });
      expect(second.url).toBe(first.url);
      await exercise(postgres, context, second);
      await second.stop();
      const connector = postgres.create(context.config, first);
      await connector.open();
    } finally {
      await first.stop();
    }
  });
});

describe("an interrupted run", () => {
  it("stops PostgreSQL and removes its data", async () => {
    const words =
      "test-1 --connectors postgres_direct --seconds 60 --concurrency 2 --accounts 100 --force".split(" ");
    const child = spawn(
      process.execPath,
      ["--import", "tsx", join(packageDirectory, "src/cli.ts"), ...words],
      {
        cwd: packageDirectory,
        env: { ...process.env, PG_URL: undefined },
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    const ended = new Promise<number | null>((done) => child.once("close", done));
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (output.includes(" TPS ")) child.kill("SIGINT");
    });
    expect(await ended, output).toBe(130);
    const directory = /data in (\S+)/.exec(output)?.[1];
    expect(directory).toBeDefined();
    expect(existsSync(directory!)).toBe(false);
  });
});
