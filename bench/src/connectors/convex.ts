// Convex over its HTTP API (section 10.8). No registry has its backend: a running one is used, with the functions of
// `convex-app`.

import { STATUS_CODES } from "node:http";
import { foundAt, isLocal, messageOf } from "../init/addresses";
import { sleep } from "../init/processes";
import { verifiedByBalances } from "./accounts";
import {
  type Account,
  type CallArguments,
  type Connector,
  NotRunning,
  VerificationFailure,
} from "./connector";
import { callWorkload, probes, workloadQueries } from "./convex_workloads";
import { type ConnectorDefinition, fairnessOf, type PrepareContext, type Prepared } from "./definition";
import { httpTransport, sendHttp } from "./http_client";

const key = "convex";
const startCommand = "start it with `npx convex dev --local` in convex-app, or set CONVEX_URL=<its address>";
const queries: ReadonlySet<string> = new Set([
  "accounts:get_account",
  "accounts:get_stats",
  ...workloadQueries,
]);

const seedChunkAccounts = 7_000;
const seedPauseMilliseconds = 500;
/** One call clears up to 4,000 accounts. */
const clearCallsMax = 10_000;
/** Accounts that are read at the same time. */
const readBatchAccounts = 64;

interface Answer {
  status?: string;
  value?: unknown;
  errorMessage?: string;
  message?: string;
}

/** The backend answered that the function failed, or is not there. */
export class ConvexError extends Error {
  override readonly name = "ConvexError";
}

/** Calls a function; queries are told from mutations by name. */
async function callFunction(url: string, path: string, args: CallArguments): Promise<unknown> {
  const kind = queries.has(path) ? "query" : "mutation";
  const { ok, status, text } = await sendHttp(`${url}/api/${kind}?format=json`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ path, args }),
  });
  let answer: Answer;
  try {
    answer = JSON.parse(text) as Answer;
  } catch {
    answer = {};
  }
  if (ok && answer.status === "success") return answer.value;
  const why = answer.errorMessage ?? answer.message ?? `HTTP ${status} ${STATUS_CODES[status] ?? ""}`;
  throw new ConvexError(`${key}: ${path} failed: ${why}`);
}

function connection(url: string, initialBalance: number, isWorker = false): Connector {
  if (!url) throw new Error(`${key}: CONVEX_URL is empty`);
  const call = (name: string, args: CallArguments = {}) =>
    callWorkload((path, given) => callFunction(url, path, given), name, args);
  const getAccount = async (id: number): Promise<Account | null> => {
    const found = (await call("accounts:get_account", { id })) as { id: number; balance: number } | null;
    return found === null || found === undefined ? null : { id: found.id, balance: BigInt(found.balance) };
  };
  /** Reads the accounts 0, 1, 2 and so on until one is missing: a function may not read all of them at once. */
  const balances = async (): Promise<BigInt64Array> => {
    const all: bigint[] = [];
    for (;;) {
      const ids = Array.from({ length: readBatchAccounts }, (_, index) => all.length + index);
      for (const account of await Promise.all(ids.map(getAccount))) {
        if (account === null) return BigInt64Array.from(all);
        all.push(account.balance);
      }
    }
  };
  return {
    ...{ name: key, call, getAccount, balances },
    open: async () => {},
    close: async () => {},
    createWorker: async () => connection(url, initialBalance, true),
    async verify() {
      if (process.env["CONVEX_USE_SHARDED_COUNTER"] === "1") {
        throw new VerificationFailure(`${key}: sharded counters cannot be read back in reasonable time`);
      }
      return verifiedByBalances({ name: key, initialBalance, isWorker }, balances);
    },
  };
}

/** Clears what is there, so that repeated preparations do not add up, and seeds in chunks that a function may write. */
async function seed(url: string, accounts: number, initial: number): Promise<void> {
  for (let calls = 0; ; calls += 1) {
    if (calls === clearCallsMax)
      throw new Error(`${key}: seed:clear_accounts has not finished after ${calls} calls`);
    if (Number(await callFunction(url, "seed:clear_accounts", {})) === 0) break;
  }
  for (let start = 0; start < accounts; start += seedChunkAccounts) {
    if (start > 0) await sleep(seedPauseMilliseconds);
    const count = Math.min(seedChunkAccounts, accounts - start);
    await callFunction(url, "seed:seed_range", { start, count, initial });
  }
}

async function prepare({ config, say, test }: PrepareContext): Promise<Prepared> {
  const url = config.convexUrl.replace(/\/+$/, "");
  try {
    const probe = probes.find(({ isOf }) => isOf(test))!;
    await callFunction(url, probe.path, probe.args);
  } catch (error) {
    if (error instanceof ConvexError) {
      throw new NotRunning(
        `a server answers at ${url}, but not with the functions of convex-app: ${messageOf(error)}`,
      );
    }
    throw new NotRunning(`no Convex at ${url} (${messageOf(error)}): ${startCommand}`);
  }
  const reseed = async () => {
    say(`seeding ${config.accounts} accounts`);
    await seed(url, config.accounts, config.initialBalance);
  };
  if (config.prep && test === "test-1") await reseed();
  return {
    ...foundAt(url),
    fairness: fairnessOf({
      isolation: "serializable (optimistic)",
      durability: "as deployed",
      transport: httpTransport(),
      colocated: isLocal(url),
    }),
    software: { server: "Convex" },
    reseed,
  };
}

export const definition: ConnectorDefinition = {
  key,
  nativeTarget: (_, { url }) => ({ kind: "convex", url }),
  ...{ startCommand, prepare },
  usualUrl: ({ convexUrl }) => convexUrl,
  create: ({ initialBalance }, { url }) => connection(url, initialBalance),
};
