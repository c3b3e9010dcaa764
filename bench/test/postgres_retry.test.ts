import type pg from "pg";
import { describe, expect, it } from "vitest";
import { postgresContent } from "../src/rpc-servers/content/postgres";
import { postgresCrm } from "../src/rpc-servers/crm/postgres";
import { postgresOrm } from "../src/rpc-servers/drizzle";
import { postgresNotes } from "../src/rpc-servers/notes/postgres";
import { postgresAccounts } from "../src/rpc-servers/postgres/accounts";
import {
  attemptsMax,
  isConnectionLoss,
  isRetryable,
  retryDelay,
  withRetries,
} from "../src/rpc-servers/postgres/retry";
import { drizzleStores, postgresStores } from "../src/rpc-servers/stores";

const withCode = (code: string) => Object.assign(new Error("refused"), { code });

describe("what is retried", () => {
  it("is a serialization failure, a deadlock, a lock that is not available", () => {
    for (const code of ["40001", "40P01", "55P03"]) expect(isRetryable(withCode(code))).toBe(true);
    for (const code of ["23505", "57014", ""]) expect(isRetryable(withCode(code))).toBe(false);
    for (const odd of [undefined, null, "40001", 40001, {}]) expect(isRetryable(odd)).toBe(false);
  });

  it("is found inside the errors that wrap it, at most five levels deep", () => {
    const wrap = (error: unknown, name: string) => Object.assign(new Error("wrapper"), { [name]: error });
    for (const name of ["cause", "originalError", "innerError"]) {
      expect(isRetryable(wrap(withCode("40001"), name))).toBe(true);
    }
    let error: unknown = withCode("40001");
    for (let level = 0; level < 4; level += 1) error = wrap(error, "cause");
    expect(isRetryable(error)).toBe(true);
    expect(isRetryable(wrap(error, "cause"))).toBe(false);
  });

  it("survives an error that is its own cause", () => {
    const error: { cause?: unknown } = {};
    error.cause = error;
    expect(isRetryable(error)).toBe(false);
  });
});

describe("a lost connection", () => {
  it("leaves the outcome unknown, and is not tried again", async () => {
    for (const code of ["57P01", "08006", "ECONNRESET", "ECONNREFUSED"]) {
      expect(isConnectionLoss(withCode(code))).toBe(true);
    }
    expect(isConnectionLoss(new Error("Connection terminated unexpectedly"))).toBe(true);
    for (const code of ["40001", "23505"]) expect(isConnectionLoss(withCode(code))).toBe(false);
    let attempts = 0;
    const failing = withRetries(
      async () => {
        attempts += 1;
        throw Object.assign(new Error("Failed query"), { cause: withCode("57P01") });
      },
      { retries: 0 },
    );
    await expect(failing).rejects.toThrow("outcome unknown");
    expect(attempts).toBe(1);
  });
});

describe("delays", () => {
  it("double from 10 ms up to 200 ms, less a random part", () => {
    const most = [1, 2, 3, 4, 5, 6, 9].map((failures) => retryDelay(failures, () => 0.999999));
    expect(most).toEqual([9, 19, 39, 79, 159, 199, 199]);
    expect(retryDelay(5, () => 0)).toBe(0);
  });
});

describe("attempts", () => {
  it("end with the first success, and are counted", async () => {
    const counter = { retries: 0 };
    let attempts = 0;
    const answer = await withRetries(async () => {
      attempts += 1;
      if (attempts < 4) throw withCode("40001");
      return "done";
    }, counter);
    expect([answer, attempts, counter.retries]).toEqual(["done", 4, 3]);
  });

  it("are not repeated after another error", async () => {
    let attempts = 0;
    const failing = withRetries(
      async () => {
        attempts += 1;
        throw withCode("23505");
      },
      { retries: 0 },
    );
    await expect(failing).rejects.toMatchObject({ code: "23505" });
    expect(attempts).toBe(1);
  });

  it("stop at ten", async () => {
    let attempts = 0;
    const failing = withRetries(
      async () => {
        attempts += 1;
        throw withCode("40001");
      },
      { retries: 0 },
    );
    await expect(failing).rejects.toMatchObject({ code: "40001" });
    expect(attempts).toBe(attemptsMax);
  });
});

describe("reads outside of transactions", () => {
  /** A pool that refuses the first statement and finds nothing in the second. */
  function refusingPool() {
    const asked = { statements: 0 };
    const query = async () => {
      asked.statements += 1;
      if (asked.statements === 1) throw withCode("40001");
      return { rows: [], rowCount: 0 };
    };
    return { asked, pool: { query } as unknown as pg.Pool };
  }

  const counter = { retries: 0 };
  const throughDrizzle = (pool: pg.Pool) =>
    drizzleStores(postgresOrm(pool), postgresStores(pool, counter, false));
  const reads: Record<string, (pool: pg.Pool) => unknown> = {
    "notes, node-postgres": (pool) => postgresNotes(pool).findMany(1),
    "notes, drizzle": (pool) => throughDrizzle(pool).notes().findMany(1),
    "a note, drizzle": (pool) => throughDrizzle(pool).notes().get(1),
    "notes with tags, drizzle": (pool) => throughDrizzle(pool).notes().findInclude(1),
    "leads, node-postgres": (pool) => postgresCrm(pool).findLeads("new", 1),
    "leads, drizzle": (pool) => throughDrizzle(pool).crm().findLeads("new", 1),
    "contacts, drizzle": (pool) => throughDrizzle(pool).crm().findContacts(1, 1),
    "a contact, drizzle": (pool) => throughDrizzle(pool).crm().getContact(1),
    "a record of ycsb": (pool) => throughDrizzle(pool).ycsb().read("user1"),
    "a scan of ycsb": (pool) => throughDrizzle(pool).ycsb().scan("user1", 1),
    content: (pool) => postgresContent(pool).read("1"),
    "content, drizzle": (pool) => throughDrizzle(pool).content().read("1"),
    "an account": (pool) => postgresAccounts(pool, "integer", counter).find(1),
  };

  it.each(Object.keys(reads))("are repeated when they are refused: %s", async (name) => {
    const { asked, pool } = refusingPool();
    const found = await reads[name]!(pool);
    expect(found === undefined || (found as unknown[]).length === 0).toBe(true);
    expect(asked.statements).toBe(2);
  });
});
