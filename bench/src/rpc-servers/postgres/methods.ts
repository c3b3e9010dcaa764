// The RPC methods of the servers of the Postgres class (section 9), and how such a server is set up.

import { availableParallelism } from "node:os";
import type pg from "pg";
import { postgresDrizzleStore } from "../content/postgres_drizzle_store";
import { contentMethods } from "../content/store";
import { crmMethods } from "../crm/methods";
import { postgresDrizzleCrm } from "../crm/postgres_store";
import { postgresJobs } from "../jobs/postgres_store";
import { jobMethods } from "../jobs/store";
import { noteMethods } from "../notes/methods";
import { postgresDrizzleNotes } from "../notes/postgres_store";
import {
  accountId,
  balancesArguments,
  initialBalanceOfVerify,
  isNoop,
  type RpcMethods,
  type RpcService,
  seedArguments,
  type Transfer,
  transferArguments,
} from "../rpc";
import { ycsbMethods } from "../ycsb_methods";
import { type IdType, PostgresAccounts } from "./accounts";
import { describeDatabase, openPool } from "./pool";
import type { RetryCounter } from "./retry";
import { postgresYcsb } from "./ycsb";

/** Whether the transfer took place. */
export type RunTransfer = (transfer: Transfer) => Promise<boolean>;

function accountMethods(accounts: PostgresAccounts, runTransfer: RunTransfer): RpcMethods {
  return {
    health: () => ({ status: "ok" }),
    async transfer(args) {
      const transfer = transferArguments(args);
      return { applied: !isNoop(transfer) && (await runTransfer(transfer)) };
    },
    async getAccount(args) {
      const account = await accounts.find(accountId(args));
      return account ? { id: account.id, balance: account.balance.toString() } : null;
    },
    async verify() {
      const initialBalance = initialBalanceOfVerify();
      if (initialBalance === undefined) return { skipped: true };
      const { accounts: count, total, changed } = await accounts.totals(initialBalance);
      return { accounts: count.toString(), total: total.toString(), changed: changed.toString() };
    },
    async balances(args) {
      const { from, count } = balancesArguments(args);
      return (await accounts.balances(from, count)).map(String);
    },
    async seed(args) {
      const { accounts: count, initialBalance } = seedArguments(args);
      await accounts.seed(count, BigInt(initialBalance));
    },
  };
}

export interface PostgresServiceOptions {
  banner: string;
  applicationName: string;
  hiddenErrorText: string;
  /** Names of the variables that may hold the address of the database; the first that is set counts. */
  urlVariables: string[];
  idType: IdType;
  /** For the columns of the report. */
  roundTripsPerTx: number;
  orm: string;
  /** Name and version of what runs the server; Node's if left out. */
  runtime?: string;
}

export interface PostgresService {
  service: RpcService;
  pool: pg.Pool;
  counter: RetryCounter;
}

/** More connections than that only wait for each other. */
const defaultPoolMax = 2 * availableParallelism();

export function poolMaxOfEnvironment(): number {
  const raw = process.env["MAX_POOL"] || String(defaultPoolMax);
  const poolMax = Number(raw);
  if (!Number.isSafeInteger(poolMax) || poolMax < 1) throw new Error(`invalid number for MAX_POOL: ${raw}`);
  return poolMax;
}

/** The port that a server listens on: the first of the variables that is set. */
export function portOfEnvironment(variables: string[], fallback: number): number {
  const name = variables.find((variable) => process.env[variable]);
  const port = name === undefined ? fallback : Number(process.env[name]);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new Error(`invalid port in ${name}: ${process.env[name ?? ""]}`);
  }
  return port;
}

/** Sets up a server; `runTransfer` replaces the transfer through Drizzle. */
export function postgresService(
  options: PostgresServiceOptions,
  runTransfer?: (pool: pg.Pool, counter: RetryCounter) => RunTransfer,
): PostgresService {
  const url = options.urlVariables.map((name) => process.env[name]).find((value) => value);
  if (!url) {
    const names = options.urlVariables.join(" or ");
    throw new Error(`${names} is not set; e.g. postgres://postgres:postgres@127.0.0.1:5432/postgres`);
  }
  const { applicationName, banner, hiddenErrorText } = options;
  const pool = openPool({ url, applicationName, poolMax: poolMaxOfEnvironment() });
  const counter: RetryCounter = { retries: 0 };
  const accounts = new PostgresAccounts(pool, options.idType, counter);
  const run: RunTransfer =
    runTransfer?.(pool, counter) ?? (({ from, to, amount }) => accounts.transfer(BigInt(amount), from, to));
  const methods: RpcMethods = {
    ...accountMethods(accounts, run),
    ...ycsbMethods(postgresYcsb(pool, counter)),
    ...jobMethods(postgresJobs(pool, counter, options.orm === "none")),
    ...crmMethods(postgresDrizzleCrm(pool, counter)),
    ...noteMethods(postgresDrizzleNotes(pool, counter)),
    ...contentMethods(postgresDrizzleStore(pool, counter)),
    // Ours: what the columns of the report say is read from the database.
    async describe() {
      const { version, roundTripMilliseconds, ...settings } = await describeDatabase(pool);
      return {
        ...settings,
        poolMax: pool.options.max,
        roundTripsPerTx: options.roundTripsPerTx,
        orm: options.orm,
        software: {
          database: version,
          databaseRoundTrip: `${roundTripMilliseconds} ms`,
          server: options.runtime ?? `Node.js ${process.version}`,
        },
        retries: counter.retries,
      };
    },
  };
  return { service: { banner, methods, hiddenErrorText }, pool, counter };
}
