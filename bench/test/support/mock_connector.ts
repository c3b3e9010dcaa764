// A system whose every answer is decided by the test.

import type { Account, CallArguments, Connector, VerifyTotals } from "../../src/connectors/connector";
import { judgeTotals, VerificationFailure } from "../../src/connectors/connector";
import type { VirtualClock } from "./virtual_clock";

export interface Behaviour {
  /** Milliseconds until the answer; undefined: there is none. */
  latency(call: number, now: number): number | undefined;
  /** The error of a call; undefined: it succeeds. */
  error?(call: number, now: number): Error | undefined;
  /** What a call answers. */
  answer?(call: number): unknown;
  /** What the destination gets; the source gives 1. */
  credit?: bigint;
}

export interface StartedCall {
  worker: number;
  at: number;
  from: number;
  to: number;
}

/** What all connections of a mock share. */
export class MockSystem {
  readonly balances: BigInt64Array;
  readonly started: StartedCall[] = [];
  inFlight = 0;
  inFlightMost = 0;
  open = 0;
  /** Connections in the order in which they were closed; the root is -1. */
  readonly closed: number[] = [];

  constructor(
    readonly clock: VirtualClock,
    readonly behaviour: Behaviour,
    accounts = 100,
    readonly initialBalance = 1000,
  ) {
    this.balances = new BigInt64Array(accounts).fill(BigInt(initialBalance));
  }

  connector(): Connector {
    return new MockConnector(this, -1);
  }
}

export class MockConnector implements Connector {
  readonly name = "mock";
  #isOpen = false;

  constructor(
    private readonly system: MockSystem,
    private readonly worker: number,
  ) {}

  async open(): Promise<void> {
    this.#isOpen = true;
    this.system.open++;
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    this.system.open--;
    this.system.closed.push(this.worker);
  }

  async createWorker({ index }: { index: number; total: number }): Promise<Connector> {
    const worker = new MockConnector(this.system, index);
    await worker.open();
    return worker;
  }

  async getAccount(id: number): Promise<Account | null> {
    const balance = this.system.balances[id];
    return balance === undefined ? null : { id, balance };
  }

  async verify(): Promise<VerifyTotals> {
    if (this.worker !== -1) throw new VerificationFailure("a worker");
    const { balances, initialBalance } = this.system;
    const total = balances.reduce((sum, balance) => sum + balance, 0n);
    const changed = BigInt(balances.filter((balance) => balance !== BigInt(initialBalance)).length);
    return judgeTotals({ accounts: BigInt(balances.length), total, changed }, initialBalance);
  }

  async balances(): Promise<BigInt64Array> {
    return this.system.balances.slice();
  }

  call(_name: string, args: CallArguments = {}): Promise<unknown> {
    const { clock, behaviour, balances, started } = this.system;
    if (!this.#isOpen) throw new Error("not open");
    const number = started.length;
    const from = args["from_id"] as number;
    const to = args["to_id"] as number;
    started.push({ worker: this.worker, at: clock.now(), from, to });
    this.system.inFlightMost = Math.max(this.system.inFlightMost, ++this.system.inFlight);
    const latency = behaviour.latency(number, clock.now());
    if (latency === undefined) return new Promise(() => {});
    return new Promise((resolve, reject) => {
      clock.at(clock.now() + latency, () => {
        this.system.inFlight--;
        const error = behaviour.error?.(number, clock.now());
        if (error) return reject(error);
        const answer = behaviour.answer?.(number);
        if ((answer as { applied?: boolean } | undefined)?.applied !== false) {
          balances[from]! -= 1n;
          balances[to]! += behaviour.credit ?? 1n;
        }
        resolve(answer);
      });
    });
  }
}
