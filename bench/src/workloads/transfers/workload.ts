// test-1 (sections 4 and 5): transfers between accounts, few of which may be in most of them.

import type { Config } from "../../config";
import {
  type Connector,
  isRefusal,
  VerificationFailure,
  type VerifyTotals,
} from "../../connectors/connector";
import { withTimeout } from "../../core/clock";
import { CollisionTracker } from "../../core/collision_tracker";
import {
  type Engine,
  type Generator,
  later,
  type Operation,
  type Outcome,
  type SystemUnderTest,
  type Verdict,
  type Workload,
  type WorkloadRun,
} from "../workload";
import { Ledger } from "./ledger";
import { type Pairs, pairsOf, startOfWorker } from "./pairs";

const amount = 1;
/** How many pairs of equal accounts are passed over before the event loop gets its turn. */
const skipsAtOnce = 10_000;

/** Its own arguments: one object per transfer, or the client's own work would be what is measured. */
class TransferOperation implements Operation {
  readonly kind = "transfer";
  readonly amount = amount;

  constructor(
    readonly from: number,
    readonly to: number,
  ) {}

  get args(): Record<string, unknown> {
    return this as unknown as Record<string, unknown>;
  }
}

/** What the workers of one run share. */
export class Transfers {
  readonly collisions: CollisionTracker;
  /** For the strict check. */
  ledger: Ledger | undefined;
  skipped = 0;

  constructor(
    readonly pairs: Pairs,
    accounts: number,
  ) {
    let usable = 0;
    while (usable < pairs.length && pairs.from[usable] === pairs.to[usable]) usable++;
    if (usable === pairs.length)
      throw new Error("no pair of two different accounts: more accounts or a lower alpha");
    this.collisions = new CollisionTracker(accounts);
  }
}

/** Takes the pairs in order, each worker from its own start, and leaves out those of one account. */
export class TransferGenerator implements Generator {
  #cursor: number;

  constructor(
    private readonly shared: Transfers,
    worker: number,
    workers: number,
  ) {
    this.#cursor = startOfWorker(worker, workers, shared.pairs.length);
  }

  next(): TransferOperation | typeof later {
    const { pairs, collisions } = this.shared;
    let cursor = this.#cursor;
    for (let skips = 0; pairs.from[cursor] === pairs.to[cursor]; ) {
      this.shared.skipped++;
      if (++cursor === pairs.length) cursor = 0;
      if (++skips === skipsAtOnce) {
        this.#cursor = cursor;
        return later;
      }
    }
    const from = pairs.from[cursor]!;
    const to = pairs.to[cursor]!;
    this.#cursor = cursor + 1 === pairs.length ? 0 : cursor + 1;
    collisions.begin(from);
    collisions.begin(to);
    return new TransferOperation(from, to);
  }

  ended(operation: Operation, outcome: Outcome | undefined, error: unknown): void {
    const { from, to } = operation as TransferOperation;
    const { collisions, ledger } = this.shared;
    collisions.end(from);
    collisions.end(to);
    if (!ledger) return;
    if (!outcome) {
      if (!isRefusal(error)) ledger.outcomeUnknown(from, to);
    } else if (outcome.ok !== false && outcome.applied !== false) {
      ledger.acknowledged(from, to, amount);
    }
  }
}

async function balancesOf(root: Connector): Promise<BigInt64Array> {
  if (!root.balances) throw new Error(`${root.name} cannot read all balances: no --verify-strict`);
  return root.balances();
}

const verifyMilliseconds = 60_000;
const verifyAttempts = 20;
const verifyPauseMilliseconds = 1000;

/**
 * A system that is still busy with operations that timed out may not be able to add up, e.g. for lack of connections or
 * by a conflict. It gets more attempts; a wrong sum is final.
 */
async function verifyPatiently(reader: Connector, { clock }: SystemUnderTest): Promise<VerifyTotals> {
  if (!reader.verify) throw new Error(`${reader.name}: there are no accounts`);
  for (let attempt = 1; ; attempt++) {
    try {
      return await reader.verify();
    } catch (error) {
      if (error instanceof VerificationFailure || attempt === verifyAttempts) throw error;
      await clock.sleep(verifyPauseMilliseconds);
    }
  }
}

/** Compares what the system has with what was acknowledged (section 5.8). */
export async function verifyTransfers(
  config: Config,
  system: SystemUnderTest,
  ledger?: Ledger,
): Promise<Verdict> {
  const verdictOf = (ok: boolean, message: string, totals?: VerifyTotals): Verdict => ({
    ok,
    message,
    accounts: String(totals?.accounts ?? 0n),
    total: String(totals?.total ?? 0n),
    expected: String((totals?.accounts ?? 0n) * BigInt(config.initialBalance)),
    changed: String(totals?.changed ?? 0n),
  });
  const { root } = system;
  // After a crash the old connections are dead.
  const reader = config.killAfterSec === undefined ? root : system.connect();
  try {
    if (reader !== root) await reader.open();
    const totals = await withTimeout(verifyPatiently(reader, system), verifyMilliseconds, "the verification");
    if (totals.accounts === 0n) {
      // Servers that the suite has not started may not know what they were seeded with.
      const message = "the server was not told the initial balance, so nothing was verified";
      return { ...verdictOf(true, message), ran: false };
    }
    const verdict = verdictOf(true, "the sum is right and balances have changed", totals);
    if (!ledger) return verdict;
    const reading = withTimeout(balancesOf(reader), verifyMilliseconds, "reading all balances");
    const strict = ledger.check(await reading);
    return { ...verdict, strict, ok: strict.ok, ...(!strict.ok && { message: strict.message }) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return verdictOf(false, message, error instanceof VerificationFailure ? error.totals : undefined);
  } finally {
    if (reader !== root) await reader.close().catch(() => undefined);
  }
}

/** What a run differs in from the others of an invocation. */
export interface TransferLoad {
  alpha: number;
  concurrency: number;
  /** Undefined: not pipelined. */
  inFlight: number | undefined;
}

/** `--kill-after`. */
async function killAfter(
  seconds: number,
  engine: Engine,
  { clock, crash, say }: SystemUnderTest,
): Promise<void> {
  if (!crash) throw new Error("--kill-after needs a server that the suite has started");
  await clock.sleep(seconds * 1000);
  say("killing the server");
  engine.halt();
  await crash();
  say("the server is back");
}

export function transferRun(config: Config, { alpha, concurrency, inFlight }: TransferLoad): WorkloadRun {
  const { accounts, seconds, warmupSec, killAfterSec } = config;
  let shared!: Transfers;
  return {
    draw() {
      shared = new Transfers(pairsOf(config.precomputedTransferPairs, accounts, alpha), accounts);
    },
    parameters: {},
    limit: { mode: "time", seconds, warmupSec },
    concurrency,
    alpha,
    accounts,
    pipelining: { inFlight },
    async load({ root }) {
      if (config.verifyStrict) shared.ledger = new Ledger(await balancesOf(root));
      return undefined;
    },
    generator: (worker, workers) => new TransferGenerator(shared, worker, workers),
    ...(killAfterSec !== undefined && {
      beside: (engine, system) => killAfter(killAfterSec, engine, system),
    }),
    alwaysVerifies: config.verifyStrict,
    verify: (system) => verifyTransfers(config, system, shared.ledger),
    figures: () => {
      const { ops, collisions, rate } = shared.collisions;
      const { skipped } = shared;
      return { skipped, collision_ops: ops, collision_count: collisions, collision_rate: rate };
    },
  };
}

const matrixAlphas = [0, 1.5];
const matrixInFlight = 40;

/** The operations in flight that are asked for on the command line. */
export const inFlightOf = (config: Config): number | undefined =>
  config.benchPipelined ? config.maxInflightPerWorker : undefined;

/** The loads that every connector gets. */
export function loadsOf(config: Config): TransferLoad[] {
  const { concurrency } = config;
  if (config.matrix) {
    return matrixAlphas.flatMap((alpha) => [
      { alpha, concurrency, inFlight: undefined },
      { alpha, concurrency, inFlight: matrixInFlight },
    ]);
  }
  return config.alphas.map((alpha) => ({ alpha, concurrency, inFlight: inFlightOf(config) }));
}

export function labelOf(
  { seconds, rate, accounts }: Config,
  { alpha, concurrency, inFlight }: TransferLoad,
): string {
  const pace = rate === undefined ? `${inFlight ?? 1} in flight each` : `${rate} operations/s`;
  return `for ${seconds} s, ${concurrency} workers, ${pace}, alpha ${alpha}, ${accounts} accounts`;
}

const publishedAccountsMax = 100_000;
const alphaMost = 3;

export const transferWorkload: Workload = {
  name: "test-1",
  warnings: ({ accounts, alphas }) => [
    ...(accounts > publishedAccountsMax
      ? ["the published suite uses another distribution beyond 100,000 accounts: do not compare"]
      : []),
    ...alphas
      .filter((alpha) => alpha > alphaMost)
      .map((alpha) => `at alpha ${alpha} most pairs are of one account and are skipped`),
  ],
  runs: (config) =>
    loadsOf(config).map((load) => ({
      label: labelOf(config, load),
      create: () => transferRun(config, load),
    })),
};
